// Derivatives of graphs: reverse mode on the intermediate representation itself.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "hetnn/ir/rewriter.h"

namespace hetnn::passes {

/// For each of `xs` the derivative of the sum of y's elements, a value of its type and shape: where several depend on
/// one another, each as if the others were given. Nodes are added where the rewriter stands, behind y; a value that y
/// does not depend on has zeros. Elementwise operators take their slopes from their formulas, others the rule beside
/// their file (gradient_rules.h).
/// Unsupported names all nodes on the way that have no derivative; InvalidModel an x or a y that is not real.
std::vector<ir::Value*> differentiate(ir::Rewriter& rewriter, ir::Value* y, std::span<ir::Value* const> xs);

/// Where an operator's derivative comes from: `formula`, `rule`, `meaning` (smaller operators that a rule names), or
/// nowhere.
std::string_view derivative_of(const ops::OpDef& op);

}  // namespace hetnn::passes
