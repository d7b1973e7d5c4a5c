// Plain loops for the pools.
#include "hetnn/kernels/pool/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hetnn::kernels::reference {
namespace {

// Calls f(output index, image of the channel, oy, ox) for every output.
template <typename F>
std::vector<double> for_outputs(const WindowGeometry& g, const std::vector<double>& x, F f) {
  std::vector<double> y;
  for (int64_t plane = 0; plane < g.batch * g.channels; ++plane)
    for (int64_t oy = 0; oy < g.out_height; ++oy)
      for (int64_t ox = 0; ox < g.out_width; ++ox) y.push_back(f(x.data() + plane * g.height * g.width, oy, ox));
  return y;
}

double larger(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b); }

}  // namespace

std::vector<double> max_pool2d(const WindowGeometry& g, const std::vector<double>& x) {
  return for_outputs(g, x, [&](const double* image, int64_t oy, int64_t ox) {
    double best = -std::numeric_limits<double>::infinity();
    for (int64_t ky = 0; ky < g.kernel_h; ++ky)
      for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
        const int64_t iy = oy * g.stride_h - g.pad_top + ky * g.dilation_h;
        const int64_t ix = ox * g.stride_w - g.pad_left + kx * g.dilation_w;
        if (iy >= 0 && iy < g.height && ix >= 0 && ix < g.width) best = larger(best, image[iy * g.width + ix]);
      }
    return best;
  });
}

std::vector<double> avg_pool2d(const WindowGeometry& g, const std::vector<double>& x, bool count_include_pad,
                               int64_t divisor_override) {
  return for_outputs(g, x, [&](const double* image, int64_t oy, int64_t ox) {
    double sum = 0;
    int64_t inside = 0, padded = 0;
    for (int64_t ky = 0; ky < g.kernel_h; ++ky)
      for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
        const int64_t iy = oy * g.stride_h - g.pad_top + ky, ix = ox * g.stride_w - g.pad_left + kx;
        if (iy < g.height + g.pad_bottom && ix < g.width + g.pad_right) ++padded;
        if (iy < 0 || iy >= g.height || ix < 0 || ix >= g.width) continue;
        sum += image[iy * g.width + ix];
        ++inside;
      }
    return sum / static_cast<double>(divisor_override != 0 ? divisor_override : count_include_pad ? padded : inside);
  });
}

std::vector<double> adaptive_pool2d(const WindowGeometry& g, const std::vector<double>& x, bool max) {
  return for_outputs(g, x, [&](const double* image, int64_t oy, int64_t ox) {
    const int64_t y0 = oy * g.height / g.out_height, y1 = ((oy + 1) * g.height + g.out_height - 1) / g.out_height;
    const int64_t x0 = ox * g.width / g.out_width, x1 = ((ox + 1) * g.width + g.out_width - 1) / g.out_width;
    double sum = 0, best = -std::numeric_limits<double>::infinity();
    for (int64_t iy = y0; iy < y1; ++iy)
      for (int64_t ix = x0; ix < x1; ++ix) {
        sum += image[iy * g.width + ix];
        best = larger(best, image[iy * g.width + ix]);
      }
    return max ? best : sum / static_cast<double>((y1 - y0) * (x1 - x0));
  });
}

}  // namespace hetnn::kernels::reference
