// softmax: normalized exponentials along an axis.
#include "hetnn/ops/batch.h"
#include "hetnn/ops/norm/exponentials.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  evaluate_exponentials(e, [](std::span<double> row, bool exact) {
    const double scale = 1 / exp_row(row, largest_of(row), exact);
    for (double& x : row) x *= scale;
  });
}

}  // namespace

OpDef define_softmax() {
  return {.name = "softmax",
          .doc = "y = exp(x) / sum of exp(x) along an axis.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"axis", AttrKind::integer, Dim(-1), "the axis; negative counts from the back"}},
          .traits = static_cast<uint32_t>(Trait::wide),
          .primitive = Primitive::softmax,
          .torch = {},
          .onnx = {{"Softmax", 13, "x axis"}},
          .infer = infer_exponentials,
          .meaning = meaning,
          .work = exponentials_work,
          .keeps_batch = keeps_batch_beside_axis,
          .constraints = {},
          .tolerance = 1e-5,
          .samples = {"softmax(f32[2,3,5,7]) {axis = 1}", "softmax(f32[n,9])"}};
}

}  // namespace hetnn::ops
