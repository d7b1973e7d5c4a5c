// expand: dimensions of 1 repeated.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& shape = call.integers("shape");
  const auto both = broadcast(x.shape, shape);
  const bool sizes =
      std::none_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_static() && d.value() < 0; });
  if (!sizes || !both || *both != shape) {
    fail(call, "expand_c1",
         text("the input must broadcast to shape; got ", to_string(x.shape), " and ", to_string(shape), "."));
  }
  return {{x.dtype, shape}};
}

void meaning(const Evaluation& e) {
  const Result y = e.output();
  copy_strided(e.input(0), 0, broadcast_strides(e.input(0).shape, y.shape), y);
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
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"expand(f32[2,1,4]) {shape = [3,2,5,4]}", "expand(f32[n,1]) {shape = [n,4]}"}};
}

}  // namespace hetnn::ops
