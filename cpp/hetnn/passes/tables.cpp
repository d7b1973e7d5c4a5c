#include "hetnn/passes/tables.h"

#include <algorithm>
#include <map>
#include <set>

#include "hetnn/ir/interpret.h"
#include "hetnn/ir/rewriter.h"

namespace hetnn::passes {
namespace {

bool is_number(const ir::Node& node, size_t input) {
  const Tensor* constant = node.constant_input(input);
  return constant && constant->elems() == 1;
}

bool is_function(const ir::Node& node) {
  constexpr uint32_t kOther = ops::Trait::conversion | ops::Trait::movement;
  return node.op().has(ops::Trait::elementwise) && (node.op().traits & kOther) == 0 && node.outputs().size() == 1;
}

bool is_i8(const ir::Value& value) {
  return value.dtype() == DType::i8 && value.type().quant && value.type().quant->per_tensor();
}

// Operands of the node's own shape, numbers left out; empty where it has others.
std::vector<ir::Value*> operands_of_shape(const ir::Node& node) {
  std::vector<ir::Value*> out;
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    if (is_number(node, k)) continue;
    ir::Value* input = node.input(k);
    if (!input || node.constant_input(k) || input->shape() != node.output()->shape()) return {};
    out.push_back(input);
  }
  return out;
}

}  // namespace

ir::Value* argument_of(const ir::Node& node) {
  if (!is_function(node)) return nullptr;
  const std::vector<ir::Value*> operands = operands_of_shape(node);
  const bool one = !operands.empty() && std::ranges::all_of(operands, [&](auto* each) { return each == operands[0]; });
  return one ? operands[0] : nullptr;
}

Composition composition_of(const ir::Graph& graph, const ir::Node& root) {
  std::set<const ir::Node*> inside;
  std::vector<const ir::Node*> backwards;
  std::vector<ir::Value*> read;  // by those inside, written by none of them
  const auto take = [&](const ir::Node& node) {
    if (!is_function(node) || !is_i8(*node.output())) return false;
    const std::vector<ir::Value*> operands = operands_of_shape(node);
    if (operands.empty() || !std::ranges::all_of(operands, [](const ir::Value* each) { return is_i8(*each); }))
      return false;
    inside.insert(&node);
    backwards.push_back(&node);
    std::erase(read, node.output());
    for (ir::Value* operand : operands) {
      if (std::ranges::find(read, operand) == read.end()) read.push_back(operand);
    }
    return true;
  };
  // Whose readers all are inside.
  const auto is_inner = [&](const ir::Value* value) {
    return value->producer() && !graph.is_output(value) &&
           std::ranges::all_of(value->uses(), [&](const ir::Use& use) { return inside.contains(use.node); });
  };
  Composition out;
  if (!take(root)) return out;
  for (size_t k = 0; k < read.size();) {
    if (!is_inner(read[k]) || !take(*read[k]->producer())) {
      ++k;
      continue;
    }
    if (read.size() == 1) out = {{backwards.rbegin(), backwards.rend()}, read.front()};
    k = 0;
  }
  return out;
}

Tensor table_of(std::span<const ir::Node* const> nodes, const ir::Value& argument) {
  ir::Graph graph("table");
  ir::Rewriter rewriter(graph);
  std::vector<int8_t> all;
  for (int32_t q = -128; q < 128; ++q) all.push_back(static_cast<int8_t>(q));
  std::map<const ir::Value*, ir::Value*> made;
  made[&argument] = rewriter.add_input("x", {DType::i8, {256}, argument.type().quant});
  for (const ir::Node* node : nodes) {
    std::vector<ir::Value*> inputs;
    for (size_t k = 0; k < node->inputs().size(); ++k) {
      const Tensor* number = node->constant_input(k);
      inputs.push_back(number ? rewriter.constant(number->reshaped({1}), "number", node->input(k)->type().quant)
                              : made.at(node->input(k)));
    }
    made[node->output()] = rewriter.add(node->op().name, std::move(inputs), node->attrs());
  }
  rewriter.add_output(made.at(nodes.back()->output()));
  const std::vector<Tensor> inputs = {Tensor::of({256}, all)};
  return ir::interpret(graph, inputs).front();
}

}  // namespace hetnn::passes
