// max_pool2d: the largest value of every window.
#include <limits>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/pool/pooling.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  visit_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    using Limits = std::numeric_limits<Wide<T>>;
    const T* in = x.values<T>().data();
    T* to = y.values<T>();
    for_each_window(window_of(e.call), x, y, [&](int64_t out, const Taps& taps) {
      Wide<T> best = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      taps.visit([&](int64_t at) {
        const auto value = static_cast<Wide<T>>(in[at]);
        if (value > best || value != value) best = value;
      });
      to[out] = static_cast<T>(best);
    });
  });
}

}  // namespace

OpDef define_max_pool2d() {
  return {.name = "max_pool2d",
          .doc = "The largest value of every window; NaN wins.",
          .inputs = {{"x", "[N,C,H,W]"}},
          .attrs = pool_attrs({{"dilation", AttrKind::integers, std::vector<Dim>{1, 1}, "height, width"}}),
          .traits = static_cast<uint32_t>(Trait::compute),
          .primitive = Primitive::largest_pool,
          .torch = {},
          .onnx = {"MaxPool"},
          .infer = infer_pool,
          .meaning = meaning,
          .work = pool_work,
          .metrics = pool_metrics,
          .keeps_batch = keeps_batch_of_first,
          .constraints = {},
          .tolerance = 0,
          .samples = {"max_pool2d(f32[1,3,8,9]) {kernel = [2,2]}",
                      "max_pool2d(f32[2,5,h,7]) {kernel = [3,3], stride = [2,2], padding = [1,1], ceil_mode = true}"}};
}

}  // namespace hetnn::ops
