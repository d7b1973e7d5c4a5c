// Plain loops for the matrix products.
#include "hetnn/kernels/gemm/reference.h"

namespace hetnn::kernels::reference {

std::vector<double> linear(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& bias,
                           int64_t m, int64_t n, int64_t k) {
  std::vector<double> y(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias.empty() ? 0.0 : bias[static_cast<size_t>(j)];
      for (int64_t l = 0; l < k; ++l) sum += a[static_cast<size_t>(i * k + l)] * b[static_cast<size_t>(j * k + l)];
      y[static_cast<size_t>(i * n + j)] = sum;
    }
  return y;
}

}  // namespace hetnn::kernels::reference
