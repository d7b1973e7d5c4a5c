// reshape: the same elements in row-major order under another shape.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<ir::Type> infer(const ir::Node& node) {
  const ir::Type& x = node.input(0)->type();
  const std::vector<Dim>& shape = node.integers("shape");
  const Dim have = elements(x.shape), want = elements(shape);
  if (have != want && (have - want).is_static()) {
    ir::fail(node, "reshape_c1",
             text("shape must hold as many elements as the input; got ", to_string(shape), " for ", to_string(x.shape),
                  ". Check the sizes."));
  }
  return {{x.dtype, shape}};
}

}  // namespace

ir::OpDef define_reshape() {
  return {
      .name = "reshape",
      .doc = "The same elements in row-major order under another shape.",
      .inputs = {{"x", "any shape"}},
      .attrs = {{"shape", ir::AttrKind::integers, std::nullopt, "the new shape"}},
      .traits = ir::Trait::movement | ir::Trait::view,
      .torch = {},
      .onnx = {},
      .infer = infer,
      .evaluate = [](const ir::Evaluation& e) { return std::vector<Tensor>{e.input(0).reshaped(e.output_shape())}; },
      .constraints = {},
      .kernel =
          [](const ir::Node&) {
            return ir::KernelUse{.kernel = "reshape", .layout = ir::KernelUse::Layout::written_plain};
          },
      .tolerance = 0,
      .samples = {"reshape(f32[2,3,4]) {shape = [6,4]}", "reshape(f32[n,4]) {shape = [2*n,2]}"}};
}

}  // namespace hetnn::ops
