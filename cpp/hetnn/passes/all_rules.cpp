// Every rule set there is.
#include "hetnn/passes/all_rules.h"

#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/canonicalize.h"
#include "hetnn/passes/combine.h"
#include "hetnn/passes/legal/rules.h"
#include "hetnn/passes/moving.h"

namespace hetnn::passes {

const std::vector<RuleStage>& all_rule_sets() {
  static const std::vector<RuleStage> all = [] {
    std::vector<RuleStage> out;
    for (const RuleSet* set : canonical_rule_sets()) out.push_back({"canonicalize", set});
    out.push_back({"canonicalize", &canonical::real_sums()});
    for (const RuleSet* set : legal::rule_sets()) out.push_back({"legalize", set});
    out.push_back({"legalize", &legal::merging()});
    out.push_back({"fuse", &moving()});
    for (const bool deterministic : {false, true}) out.push_back({"fuse", &combining(deterministic)});
    out.push_back({"fuse", &combining_narrow()});
    out.push_back({"fuse", &scaling()});
    out.push_back({"fuse", &banding()});
    out.push_back({"fuse", &attending()});
    return out;
  }();
  return all;
}

}  // namespace hetnn::passes
