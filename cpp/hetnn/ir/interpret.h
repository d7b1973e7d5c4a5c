// The reference interpreter: runs a graph by the meanings of its operators.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::ir {

/// Sees every value as it is computed.
using Observer = std::function<void(const Value&, const Tensor&)>;

/// The graph's outputs for `inputs`, in order. The symbols' values come from the inputs' shapes. Values are freed after
/// their last reader. InvalidModel naming the input: another number of inputs, element type or shape than declared, a
/// symbol out of its range or with two values. Unsupported for an operator without a reference meaning.
std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs, const Observer& observer = {});

}  // namespace hetnn::ir
