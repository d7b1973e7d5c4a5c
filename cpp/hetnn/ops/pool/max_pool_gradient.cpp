// max_pool_gradient: what max pooling gives back to its input.
#include "hetnn/ops/pool/pooling.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &gradient = call.input(1);
  if (x.rank() != 4 || gradient.dtype != x.dtype)
    fail(call, "max_pool_gradient_c1",
         text("x and gradient must be images [N,C,H,W] of one type; got ", to_string(x), " and ", to_string(gradient),
              ". Check their ranks."));
  const Window window = window_of(call);
  check_pool_window(call, window, "max_pool_gradient_c2");
  if (const Shape made = windows_over(call, window, x.shape[1], call.flag("ceil_mode"), "max_pool_gradient_c3");
      made != gradient.shape) {
    fail(call, "max_pool_gradient_c4",
         text("gradient must have the shape of the pooling's result, ", to_string(made), "; got ", to_string(gradient),
              ". Check the window."));
  }
  return {x};
}

void meaning(const Evaluation& e) {
  const View &x = e.input(0), &gradient = e.input(1);
  const Result y = e.output();
  const Window w = window_of(e.call);
  const int64_t height = x.shape[2], width = x.shape[3], rows = gradient.shape[2], columns = gradient.shape[3];
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *in = x.values<T>().data(), *by = gradient.values<T>().data();
    T* to = y.values<T>();
    std::fill_n(to, y.elems(), T{});
    for (int64_t k = 0; k < gradient.elems(); ++k) {
      const int64_t i = k / columns % rows, j = k % columns, plane = k / (rows * columns) * height * width;
      const Interval down = w[0].taps(i, height), across = w[1].taps(j, width);
      int64_t best = -1;
      for (int64_t r = down.begin; r < down.end; ++r) {
        for (int64_t s = across.begin; s < across.end; ++s) {
          const int64_t at = plane + (w[0].begin(i) + r * w[0].dilation) * width + w[1].begin(j) + s * w[1].dilation;
          if (best < 0 || in[at] > in[best] || in[at] != in[at]) best = at;
        }
      }
      if (best >= 0) to[best] = static_cast<T>(to[best] + by[k]);
    }
  });
}

}  // namespace

OpDef define_max_pool_gradient() {
  return {.name = "max_pool_gradient",
          .doc =
              "The gradient of max_pool2d: what the windows whose largest value an element is, the first of equals, "
              "give to it; NaN wins.",
          .inputs = {{"x", "[N,C,H,W]"}, {"gradient", "[N,C,OH,OW], of the pooling's result"}},
          .attrs = {{"kernel", AttrKind::integers, std::nullopt, "height, width"},
                    {"stride", AttrKind::integers, std::vector<Dim>{1}, "height, width"},
                    {"padding", AttrKind::integers, std::vector<Dim>{0}, "on both sides of each axis"},
                    {"dilation", AttrKind::integers, std::vector<Dim>{1}, "height, width"},
                    {"ceil_mode", AttrKind::boolean, false, "whether a last, partial window counts"}},
          .traits = static_cast<uint32_t>(Trait::wide),
          .infer = infer,
          .meaning = meaning,
          .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.input(0).shape) * 3}; },
          .tolerance = 1e-6,
          .samples = {"max_pool_gradient(f32[2,3,8,7], f32[2,3,4,3]) {kernel = [2,2], stride = [2,2]}",
                      "max_pool_gradient(f32[1,20,7,9], f32[1,20,7,9]) {kernel = [3,3], padding = [1,1]}",
                      "max_pool_gradient(f32[n,2,7,7], f32[n,2,4,4]) {kernel = [2,2], stride = [2,2], "
                      "ceil_mode = true}",
                      "max_pool_gradient(f32[1,2,7,8], f32[1,2,1,6]) {kernel = [3,2], stride = [3,1], "
                      "dilation = [2,2]}"}};
}

}  // namespace hetnn::ops
