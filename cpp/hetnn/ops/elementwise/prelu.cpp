// prelu: y = max(x, 0) + slope * min(x, 0).
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

// x [N,C,...] (or any rank with one slope), slope [1] or [C] with C on axis 1.
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &slope = call.input(1);
  if (x.dtype != slope.dtype || !is_real(x)) {
    fail(call, "prelu_c1",
         text("input and slope must be of one real type; got ", dtype_name(x.dtype), " and ", dtype_name(slope.dtype),
              ". Cast one of them."));
  }
  const Dim channels = x.shape.size() >= 2 ? x.shape[1] : Dim(1);
  if (slope.shape.size() != 1 || (slope.shape[0] != Dim(1) && slope.shape[0] != channels)) {
    fail(call, "prelu_c2",
         text("slope must have shape [1] or one value a channel, [", channels, "]; got ", to_string(slope.shape),
              ". Check num_parameters."));
  }
  return {x};
}

// The slopes along axis 1 of x.
void evaluate_prelu(const Evaluation& e) {
  const View &x = e.input(0), &slope = e.input(1);
  std::vector<int64_t> shape(x.shape.size(), 1);
  if (x.rank() >= 2) shape[1] = slope.elems();
  const View inputs[] = {x, {slope.dtype, shape, slope.data}};
  evaluate(Function::prelu, {e.call, inputs, e.results});
}

}  // namespace

OpDef define_prelu() {
  return {.name = "prelu",
          .doc = "Parametric rectified linear unit, one slope or one a channel: y = max(x, 0) + slope * min(x, 0).",
          .inputs = {{"x", "[N,C,...]"}, {"slope", "[1] or [C]"}},
          .traits = Trait::elementwise | Trait::channelwise,
          .torch = {{"aten.prelu.default", "x slope"}},
          .infer = infer,
          .meaning = evaluate_prelu,
          .tolerance = function_def(Function::prelu).tolerance,
          .samples = {"prelu(f32[2,3,5,7], f32[3])", "prelu(f32[2,3,4], f32[1])", "prelu(f32[n,6], f32[6])"}};
}

}  // namespace hetnn::ops
