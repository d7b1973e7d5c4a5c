// expand: dimensions of 1 repeated.
#include <algorithm>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/late.h"
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

void resolve(const Evaluation& e, Attrs& attrs) {
  const View& x = e.input(0);
  auto& shape = std::get<std::vector<Dim>>(attrs.at("shape"));
  const auto both = broadcast(Shape(x.shape.begin(), x.shape.end()), shape);
  if (!both) {
    fail(e.call, "expand_to_c2",
         text("x must broadcast with the shape; got ", to_string(e.call.input(0)), " and ", to_string(shape), "."));
  }
  shape = *both;
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
          .keeps_batch =
              [](const Call& call, Batched batched) {
                return keeps_batch_of_first(call, batched) && keeps_batch_of_all(call, batched);
              },
          .constraints = {},
          .tolerance = 0,
          .samples = {"expand(f32[2,1,4]) {shape = [3,2,5,4]}", "expand(f32[n,1]) {shape = [n,4]}"}};
}

OpDef define_expand_to() {
  return late_form<define_expand, resolve>({.name = "expand_to",
                                            .doc = "x broadcast with a shape that is known at run time.",
                                            .inputs = {{"x", "any shape"}, {"shape", "integers"}},
                                            .samples = {"expand_to(f32[3,1], i64[3] {2, 1, 4}) {sizes = [2,3,4]}"}});
}

}  // namespace hetnn::ops
