// identity: y = x, as a value of its own.
#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

OpDef define_identity() {
  return {.name = "identity",
          .doc = "A copy: y = x.",
          .inputs = {{"x", "any shape"}},
          .attrs = {},
          .traits = Trait::movement | Trait::view,
          .primitive = Primitive::rearrange,
          .torch = {},
          .onnx = {{"Identity", 1, "x"}},
          .infer = same_as_input,
          .meaning = [](const Evaluation& e) { copy(e.input(0), e.output()); },
          .keeps_batch = keeps_batch_of_first,
          .constraints = {},
          .tolerance = 0,
          .samples = {"identity(f32[2,3])", "identity(i64[n])"}};
}

}  // namespace hetnn::ops
