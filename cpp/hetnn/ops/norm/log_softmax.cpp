// log_softmax: logarithm of normalized exponentials along an axis.
#include <cmath>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/norm/exponentials.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  std::vector<double> exponentials;
  evaluate_exponentials(e, [&](std::span<double> row, bool exact) {
    const double largest = largest_of(row);
    exponentials.assign(row.begin(), row.end());
    const double log = std::log(exp_row(exponentials, largest, exact));
    for (double& x : row) x = x - largest - log;
  });
}

}  // namespace

OpDef define_log_softmax() {
  return {.name = "log_softmax",
          .doc = "y = x - log(sum of exp(x)) along an axis.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"axis", AttrKind::integer, Dim(-1), "the axis; negative counts from the back"}},
          .traits = static_cast<uint32_t>(Trait::wide),
          .torch = {},
          .onnx = {{"LogSoftmax", 13, "x axis"}},
          .infer = infer_exponentials,
          .meaning = meaning,
          .work = exponentials_work,
          .keeps_batch = keeps_batch_beside_axis,
          .constraints = {},
          .tolerance = 1e-5,
          .samples = {"log_softmax(f32[2,3,5,7]) {axis = 1}", "log_softmax(f32[n,9])"}};
}

}  // namespace hetnn::ops
