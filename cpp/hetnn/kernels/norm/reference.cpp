// Plain loops for the normalizations and softmax.
#include "hetnn/kernels/norm/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hetnn::kernels::reference {

std::vector<double> row_norm(const std::vector<double>& x, int64_t n, const std::vector<double>& weight,
                             const std::vector<double>& bias, double eps, bool rms) {
  std::vector<double> y(x.size());
  const auto width = static_cast<size_t>(n);
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, square = 0;
    if (!rms) {
      for (size_t i = 0; i < width; ++i) mean += x[row + i];
      mean /= static_cast<double>(n);
    }
    for (size_t i = 0; i < width; ++i) square += (x[row + i] - mean) * (x[row + i] - mean);
    const double scale = 1 / std::sqrt(square / static_cast<double>(n) + eps);
    for (size_t i = 0; i < width; ++i)
      y[row + i] = (x[row + i] - mean) * scale * (weight.empty() ? 1 : weight[i]) + (bias.empty() ? 0 : bias[i]);
  }
  return y;
}

std::vector<double> group_norm(const std::vector<double>& x, int64_t batch, int64_t channels, int64_t pixels,
                               int64_t groups, const std::vector<double>& weight, const std::vector<double>& bias,
                               double eps) {
  std::vector<double> y = row_norm(x, channels / groups * pixels, {}, {}, eps, false);
  for (int64_t i = 0; i < batch * channels * pixels; ++i) {
    const auto at = static_cast<size_t>(i), channel = static_cast<size_t>(i / pixels % channels);
    y[at] = y[at] * (weight.empty() ? 1 : weight[channel]) + (bias.empty() ? 0 : bias[channel]);
  }
  return y;
}

std::vector<double> softmax(const std::vector<double>& x, int64_t outer, int64_t n, int64_t inner, bool log) {
  std::vector<double> y(x.size());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t k) { return static_cast<size_t>((o * n + k) * inner + i); };
      double max = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t k = 0; k < n; ++k) max = std::isnan(x[at(k)]) ? x[at(k)] : std::max(max, x[at(k)]);
      for (int64_t k = 0; k < n; ++k) sum += std::exp(x[at(k)] - max);
      for (int64_t k = 0; k < n; ++k) y[at(k)] = log ? x[at(k)] - max - std::log(sum) : std::exp(x[at(k)] - max) / sum;
    }
  return y;
}

}  // namespace hetnn::kernels::reference
