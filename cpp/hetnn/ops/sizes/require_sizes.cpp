// require_sizes: a run goes on where conditions of its sizes hold.
#include <algorithm>
#include <string_view>

#include "hetnn/ops/demand.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call&) { return {{DType::boolean, {}}}; }

// One of `texts`, which semicolons separate.
std::string_view part_of(std::string_view texts, size_t number) {
  for (; number > 0; --number) texts.remove_prefix(std::min(texts.find("; "), texts.size() - 2) + 2);
  return texts.substr(0, texts.find("; "));
}

void meaning(const Evaluation& e) {
  const std::vector<Dim>& holds = e.call.integers("holds");
  for (size_t k = 0; k < holds.size(); ++k) {
    if (holds[k] != Dim(0)) continue;
    fail(e.call, "require_sizes_c1",
         text("the model is for sizes with ", part_of(e.call.string(kDemand), k), " alone. Change the inputs' sizes."));
  }
  *e.output().values<bool>() = true;
}

}  // namespace

OpDef define_require_sizes() {
  return {.name = "require_sizes",
          .doc = "Whether conditions of sizes hold, which must be so: a run in which one does not ends.",
          .attrs = {{"holds", AttrKind::integers, std::nullopt, "for each condition a size, 0 where it does not hold"},
                    demand("the conditions, separated by semicolons, for the message")},
          .traits = static_cast<uint32_t>(Trait::source),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"require_sizes() {holds = [3, 1], demand = \"n > 0; n < 9\"}", "require_sizes() {holds = [1]}"}};
}

}  // namespace hetnn::ops
