// reshape: the same elements in row-major order under another shape.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& shape = call.integers("shape");
  const Dim have = elements(x.shape), want = elements(shape);
  const bool sizes =
      std::none_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static() && d.value() < 0; });
  if (!sizes || (have != want && (have - want).is_static())) {
    fail(call, "reshape_c1",
         text("shape must hold as many elements as the input; got ", to_string(shape), " for ", to_string(x.shape),
              ". Check the sizes."));
  }
  return {{x.dtype, shape}};
}

}  // namespace

OpDef define_reshape() {
  return {.name = "reshape",
          .doc = "The same elements in row-major order under another shape.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"shape", AttrKind::integers, std::nullopt, "the new shape"}},
          .traits = Trait::movement | Trait::view,
          .primitive = Primitive::rearrange,
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = [](const Evaluation& e) { copy(e.input(0), e.output()); },
          .constraints = {},
          .tolerance = 0,
          .samples = {"reshape(f32[2,3,4]) {shape = [6,4]}", "reshape(f32[n,4]) {shape = [2*n,2]}"}};
}

}  // namespace hetnn::ops
