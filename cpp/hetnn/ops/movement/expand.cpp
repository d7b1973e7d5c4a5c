// expand: dimensions of 1 repeated.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& shape = call.integers("shape");
  const auto both = broadcast(x.shape, shape);
  if (!both || *both != shape) {
    fail(call, "expand_c1",
             text("the input must broadcast to shape; got ", to_string(x.shape), " and ", to_string(shape), "."));
  }
  return {{x.dtype, shape}};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const std::vector<int64_t> shape = e.output_shape();
  return {gather_strided(e.input(0), shape, 0, broadcast_strides(e.input(0).shape(), shape))};
}

}  // namespace

OpDef define_expand() {
  return {.name = "expand",
          .doc = "The input broadcast to a shape.",
          .inputs = {{"x", "broadcasts to shape"}},
          .attrs = {{"shape", AttrKind::integers, std::nullopt, "the shape of y"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {},
          .onnx = {},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel = named_kernel("expand", {}, KernelUse::Layout::written_plain),
          .tolerance = 0,
          .samples = {"expand(f32[2,1,4]) {shape = [3,2,5,4]}", "expand(f32[n,1]) {shape = [n,4]}"}};
}

}  // namespace hetnn::ops
