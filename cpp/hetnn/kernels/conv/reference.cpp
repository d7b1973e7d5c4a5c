// Plain loops for the convolutions.
#include "hetnn/kernels/conv/reference.h"

namespace hetnn::kernels::reference {
namespace {

std::vector<double> start_from_bias(const WindowGeometry& g, const std::vector<double>& bias) {
  const int64_t pixels = g.out_height * g.out_width;
  std::vector<double> y(static_cast<size_t>(g.batch * g.out_channels * pixels));
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = bias.empty() ? 0.0 : bias[i / static_cast<size_t>(pixels) % static_cast<size_t>(g.out_channels)];
  return y;
}

}  // namespace

std::vector<double> conv2d(const WindowGeometry& g, const std::vector<double>& x, const std::vector<double>& weight,
                           const std::vector<double>& bias) {
  std::vector<double> y = start_from_bias(g, bias);
  const int64_t in_group = g.channels / g.groups, out_group = g.out_channels / g.groups;
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.out_channels; ++o)
      for (int64_t oy = 0; oy < g.out_height; ++oy)
        for (int64_t ox = 0; ox < g.out_width; ++ox) {
          double sum = 0;
          for (int64_t c = 0; c < in_group; ++c)
            for (int64_t ky = 0; ky < g.kernel_h; ++ky)
              for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
                const int64_t iy = oy * g.stride_h - g.pad_top + ky * g.dilation_h;
                const int64_t ix = ox * g.stride_w - g.pad_left + kx * g.dilation_w;
                if (iy < 0 || iy >= g.height || ix < 0 || ix >= g.width) continue;
                const int64_t channel = o / out_group * in_group + c;
                sum += x[static_cast<size_t>(((n * g.channels + channel) * g.height + iy) * g.width + ix)] *
                       weight[static_cast<size_t>(((o * in_group + c) * g.kernel_h + ky) * g.kernel_w + kx)];
              }
          y[static_cast<size_t>(((n * g.out_channels + o) * g.out_height + oy) * g.out_width + ox)] += sum;
        }
  return y;
}

std::vector<double> conv_transpose2d(const WindowGeometry& g, const std::vector<double>& x,
                                     const std::vector<double>& weight, const std::vector<double>& bias) {
  std::vector<double> y = start_from_bias(g, bias);
  const int64_t in_group = g.channels / g.groups, out_group = g.out_channels / g.groups;
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t c = 0; c < g.channels; ++c)
      for (int64_t iy = 0; iy < g.height; ++iy)
        for (int64_t ix = 0; ix < g.width; ++ix)
          for (int64_t o = 0; o < out_group; ++o)
            for (int64_t ky = 0; ky < g.kernel_h; ++ky)
              for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
                const int64_t oy = iy * g.stride_h - g.pad_top + ky * g.dilation_h;
                const int64_t ox = ix * g.stride_w - g.pad_left + kx * g.dilation_w;
                if (oy < 0 || oy >= g.out_height || ox < 0 || ox >= g.out_width) continue;
                const int64_t channel = c / in_group * out_group + o;
                y[static_cast<size_t>(((n * g.out_channels + channel) * g.out_height + oy) * g.out_width + ox)] +=
                    x[static_cast<size_t>(((n * g.channels + c) * g.height + iy) * g.width + ix)] *
                    weight[static_cast<size_t>(((c * out_group + o) * g.kernel_h + ky) * g.kernel_w + kx)];
              }
  return y;
}

}  // namespace hetnn::kernels::reference
