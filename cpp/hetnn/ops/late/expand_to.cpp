// expand_to: repetition along axes of one element to a shape that an input
// holds.
#include "hetnn/ops/late/late.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const std::vector<int64_t> shape = values_as<int64_t>(e.input(1));
  const auto both = broadcast(Shape(x.shape.begin(), x.shape.end()), Shape(shape.begin(), shape.end()));
  if (!both) {
    fail(e.call, "expand_to_c2",
         text("x must broadcast with the shape; got ", to_string(e.call.input(0)), " and ",
              to_string(Shape(shape.begin(), shape.end())), "."));
  }
  evaluate_as(e, "expand", {{"shape", *both}});
}

}  // namespace

OpDef define_expand_to() {
  return {.name = "expand_to",
          .doc = "x broadcast with a shape that is known at run time.",
          .inputs = {{"x", "any shape"}, {"shape", "integers"}},
          .attrs = {sizes_attr()},
          .traits = static_cast<uint32_t>(Trait::movement),
          .infer = infer_late,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"expand_to(f32[3,1], i64[3] {2, 1, 4}) {sizes = [2,3,4]}"}};
}

}  // namespace hetnn::ops
