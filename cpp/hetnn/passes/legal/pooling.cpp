// Pooling and means by each other and by convolutions.
#include <algorithm>
#include <array>

#include "hetnn/passes/legal/rules.h"

namespace hetnn::passes::legal {
const RuleSet& pooling() {
  static const RuleSet set = {"pooling", "Pooling and means by each other and by convolutions.", {}};
  return set;
}
}  // namespace hetnn::passes::legal
