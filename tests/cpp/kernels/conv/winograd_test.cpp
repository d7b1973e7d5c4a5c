// Convolutions by Winograd's sums against their meanings.
#include "hetnn/kernels/conv/winograd.h"

#include <limits>

#include "conv_cases.h"

namespace hetnn::kernels::testing {
namespace {

const std::vector<std::string> kSides = {"conv2d_winograd", "conv2d_winograd_2x2"};

TEST(Conv2d, WinogradOverTailsAndPadding) {
  for (const std::string& kernel : kSides) {
    for (const int64_t c : {1, 16, 33})
      for (const int64_t o : {1, 16, 50})
        for (const int64_t h : {3, 6, 9}) {
          check_conv({.n = 2,
                      .c = c,
                      .h = h,
                      .w = h + 4,
                      .o = o,
                      .kh = 3,
                      .kw = 3,
                      .padding = {1, 1, 1, 1},
                      .kernel = kernel});
          check_conv({.c = c, .h = h, .w = h + 1, .o = o, .kh = 3, .kw = 3, .padding = {0, 2, 1, 0}, .kernel = kernel});
          if (HasFatalFailure()) return;
        }
    // Weights of more channels than are transformed at once, and large enough for the shared mode.
    for (const int64_t o : {20, 150, 600})
      check_conv({.c = 160, .h = 14, .w = 15, .o = o, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .kernel = kernel});
  }
}

TEST(Conv2d, WinogradOfLinesAndOfDilatedWindows) {
  for (const int64_t c : {1, 16, 33})
    for (const int64_t dilation : {1, 2, 5})
      for (const int64_t size : {11, 16}) {
        Case across = {.n = 2,
                       .c = c,
                       .h = 3,
                       .w = size,
                       .o = c + 2,
                       .kh = 1,
                       .kw = 3,
                       .padding = {0, dilation, 0, dilation},
                       .dw = dilation,
                       .kernel = "conv2d_winograd"};
        check_conv(across);
        across.padding = {1, 0, 0, 1};
        check_conv(across);
        check_conv({.c = c,
                    .h = size,
                    .w = 5,
                    .o = 50,
                    .kh = 3,
                    .kw = 1,
                    .padding = {dilation, 0, 1, 2},
                    .dh = dilation,
                    .kernel = "conv2d_winograd"});
        for (const std::string& kernel : kSides)
          check_conv({.n = 2,
                      .c = c,
                      .h = size,
                      .w = size + 3,
                      .o = 20,
                      .kh = 3,
                      .kw = 3,
                      .padding = {dilation, 1, dilation, 3},
                      .dh = dilation,
                      .dw = 3,
                      .kernel = kernel});
        if (HasFatalFailure()) return;
      }
}

TEST(Conv2d, WinogradKeepsWhatIsNotFiniteWhereItIsRead) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Case> cases = {
      {.n = 2,
       .c = 33,
       .h = 13,
       .w = 10,
       .o = 50,
       .kh = 3,
       .kw = 3,
       .padding = {1, 1, 1, 1},
       .kernel = "conv2d_winograd"},
      {.c = 16, .h = 9, .w = 11, .o = 16, .kh = 3, .kw = 3, .padding = {0, 2, 1, 0}, .kernel = "conv2d_winograd"},
      {.c = 160, .h = 14, .w = 15, .o = 150, .kh = 3, .kw = 3, .padding = {1, 1, 1, 1}, .kernel = "conv2d_winograd"},
      {.c = 33,
       .h = 2,
       .w = 40,
       .o = 20,
       .kh = 1,
       .kw = 3,
       .padding = {0, 2, 0, 2},
       .dw = 2,
       .kernel = "conv2d_winograd"},
      {.c = 16, .h = 30, .w = 3, .o = 50, .kh = 3, .kw = 1, .padding = {2, 0, 1, 0}, .kernel = "conv2d_winograd"},
      {.c = 5,
       .h = 14,
       .w = 15,
       .o = 16,
       .kh = 3,
       .kw = 3,
       .padding = {2, 3, 2, 3},
       .dh = 2,
       .dw = 3,
       .kernel = "conv2d_winograd"}};
  for (size_t k = cases.size(); k-- > 0;) {
    if (cases[k].kh * cases[k].kw != 9) continue;
    cases.push_back(cases[k]);
    cases.back().kernel = "conv2d_winograd_2x2";
  }
  for (const Case& c : cases) {
    // A few, as many as there are pixels, or every fifth element of all; of NaN whole tiles then know what they are.
    const auto pixels = static_cast<size_t>(c.n * c.h * c.w), some = pixels * static_cast<size_t>(c.c) / 5;
    for (const std::vector<double>& values : std::vector<std::vector<double>>{{infinity},
                                                                              {nan},
                                                                              {infinity, -infinity, nan},
                                                                              std::vector<double>(pixels, infinity),
                                                                              std::vector<double>(some, nan),
                                                                              std::vector<double>(some, -infinity)}) {
      Tensor x = random_nhwc({c.n, c.c, c.h, c.w}, 1, 0), w = random_plain({c.o, c.c, c.kh, c.kw}, 2);
      const size_t step = x.values.size() / std::max<size_t>(5, values.size());
      for (size_t k = 0; k < values.size(); ++k) x.values[((k + 1) * step + k) % x.values.size()] = values[k];
      // A weight of 0 beside an infinity is no number.
      for (size_t k = 0; k < w.values.size(); k += 7) w.values[k] = 0;
      const Tensor b = random_plain({c.o}, 3);
      const Size g = output_of(c);
      const TensorView y = TensorView::nhwc(DType::f32, std::vector<int64_t>{c.n, c.o, g.height, g.width});
      check_kernel(c.kernel, {x, w, b}, {y}, params_of(c, true), {meaning("conv2d", {x, w, b}, attrs_of(c))}, 1e-5,
                   text(c.c, " channels, ", values.size(), " of ", values[0]));
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace hetnn::kernels::testing
