// Functions of one value of 8 bits, and their tables.
#pragma once

#include <span>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// The one operand of an elementwise node whose other operands are constants of one number each, where the result has
/// its shape; null for any other node.
ir::Value* argument_of(const ir::Node& node);

/// Several elementwise nodes that are one function of one value.
struct Composition {
  std::vector<const ir::Node*> nodes;  // in the order in which they are computed, the last being `root`
  ir::Value* argument = nullptr;
};
/// The largest that ends with `root`, of quantized i8 values that nothing else reads, `root` included; without a node
/// where there is none of two nodes at least.
Composition composition_of(const ir::Graph& graph, const ir::Node& root);

/// What `nodes`, in order, make of each i8 at the scale of `argument`, from -128 to 127.
Tensor table_of(std::span<const ir::Node* const> nodes, const ir::Value& argument);

}  // namespace hetnn::passes
