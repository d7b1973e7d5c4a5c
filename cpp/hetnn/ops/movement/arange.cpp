// arange: evenly spaced integers or reals.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Dim length = ceil_div(call.integer("end") - call.integer("start"), call.integer("step"));
  if (length.is_static() && length.value() < 0) {
    fail(call, "arange_c1",
             text("end must lie in the direction of step; got ", call.integer("start"), ", ", call.integer("end"), ", ",
                  call.integer("step"), "."));
  }
  return {{call.dtype("dtype"), {length}}};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const int64_t start = e.call.integer("start").evaluate(e.bindings),
                step = e.call.integer("step").evaluate(e.bindings);
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(e.call.dtype("dtype"), e.output_shape(), &data);
  visit_dtype(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t k = 0; k < y.elems(); ++k) mutable_values<T>(data)[k] = static_cast<T>(start + k * step);
  });
  return {y};
}

}  // namespace

OpDef define_arange() {
  return {.name = "arange",
          .doc = "start, start + step, ... below end, whole numbers.",
          .inputs = {},
          .attrs = {{"start", AttrKind::integer, Dim(0), "the first"},
                    {"end", AttrKind::integer, std::nullopt, "one past the last"},
                    {"step", AttrKind::integer, Dim(1), "the distance"},
                    {"dtype", AttrKind::dtype, DType::i64, "the element type"}},
          .traits = static_cast<uint32_t>(Trait::source),
          .torch = {},
          .onnx = {"Range"},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel = named_kernel("arange", {"start", "step"}, KernelUse::Layout::plain),
          .tolerance = 0,
          .samples = {"arange() {end = 5}", "arange() {start = 2, end = 9, step = 3, dtype = f32}"}};
}

}  // namespace hetnn::ops
