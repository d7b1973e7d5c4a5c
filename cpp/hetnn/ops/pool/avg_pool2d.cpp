// avg_pool2d: the mean of every window.
#include "hetnn/ops/batch.h"
#include "hetnn/ops/mean.h"
#include "hetnn/ops/pool/pooling.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  if (fixed_integer(call, "divisor_override") < 0) {
    fail(call, "avg_pool2d_c5",
         text("divisor_override must not be negative; got ", call.integer("divisor_override"), "."));
  }
  return infer_pool(call);
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const int64_t divisor = fixed_integer(e.call, "divisor_override");
  const bool count_padding = e.call.flag("count_include_pad");
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* in = x.values<T>().data();
    T* to = y.values<T>();
    for_each_window(window_of(e.call), x, y, [&](int64_t out, const Taps& taps) {
      MeanSum<T> sum = 0;
      taps.visit([&](int64_t at) { sum += static_cast<MeanSum<T>>(in[at]); });
      to[out] = mean_of<T>(e.call, sum, divisor > 0 ? divisor : count_padding ? taps.padded : taps.count());
    });
  });
}

}  // namespace

OpDef define_avg_pool2d() {
  return {.name = "avg_pool2d",
          .doc = "The mean of every window.",
          .inputs = {{"x", "[N,C,H,W]"}},
          .attrs = pool_attrs({{"count_include_pad", AttrKind::boolean, true, "whether padding counts in the divisor"},
                               {"divisor_override", AttrKind::integer, Dim(0), "the divisor; 0: the window's size"}}),
          .traits = Trait::compute | Trait::wide,
          .primitive = Primitive::mean_pool,
          .torch = {},
          .onnx = {"AveragePool"},
          .infer = infer,
          .meaning = meaning,
          .work = pool_work,
          .metrics = pool_metrics,
          .keeps_batch = keeps_batch_of_first,
          .constraints = {},
          .tolerance = 1e-6,
          .samples = {"avg_pool2d(f32[1,3,8,9]) {kernel = [2,2]}",
                      "avg_pool2d(f32[2,5,h,7]) {kernel = [3,3], stride = [2,2], padding = [1,1], ceil_mode = true}"}};
}

}  // namespace hetnn::ops
