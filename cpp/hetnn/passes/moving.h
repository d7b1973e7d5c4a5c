// Movements that a device can do without: by leaving values in one another's memory, channels last.
#pragma once

#include "hetnn/passes/rule.h"

namespace hetnn::passes {

/// For devices that keep pixels' channels together and let parts lie in their wholes. Every right side moves the same
/// elements, or fewer.
const RuleSet& moving();

/// Applies them. What is made stands on the device and in the subgraph of the node that it takes the place of.
void move_less(ir::Graph& graph);

}  // namespace hetnn::passes
