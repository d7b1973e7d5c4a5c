// Every rule set there is, for the documentation and for the census of the tests.
#pragma once

#include <vector>

#include "hetnn/passes/rule.h"

namespace hetnn::passes {

struct RuleStage {
  std::string_view pass;  // canonicalize, legalize, fuse
  const RuleSet* set;
};

/// In the order of application.
const std::vector<RuleStage>& all_rule_sets();

}  // namespace hetnn::passes
