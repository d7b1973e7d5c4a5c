// require: a run goes on where a condition holds.
#include <algorithm>

#include "hetnn/ops/demand.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& holds = call.input(0);
  if (holds.dtype != DType::boolean)
    fail(call, "require_c1", text("holds must be bool; got ", to_string(holds), ". Compare it with something."));
  return {{DType::boolean, {}}};
}

void check(const Call& call, std::span<const View> inputs) {
  if (!inputs[0].data) return;
  const auto holds = inputs[0].values<bool>();
  if (std::all_of(holds.begin(), holds.end(), [](bool one) { return one; })) return;
  fail(call, "require_c2",
       text("the model asks for what these values do not fulfil: ", call.string(kDemand), ". Change the inputs."));
}

void meaning(const Evaluation& e) { *e.output().values<bool>() = true; }

}  // namespace

OpDef define_require() {
  return {.name = "require",
          .doc = "Whether all of a condition holds, which must be so: a run in which it does not ends.",
          .inputs = {{"holds", "bool, any shape"}},
          .attrs = {demand("what is asked for, for the message")},
          .infer = infer,
          .check = check,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"require(bool[] {1}) {demand = \"x > 0\"}", "require(bool[2,2] {1, 1, 1, 1})"}};
}

}  // namespace hetnn::ops
