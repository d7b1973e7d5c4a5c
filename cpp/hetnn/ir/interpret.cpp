// The reference interpreter.
#include "hetnn/ir/interpret.h"

#include <algorithm>
#include <map>

#include "hetnn/base/affine_dim.h"
#include "hetnn/base/counted.h"
#include "hetnn/base/error.h"
#include "hetnn/base/progress.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ops/quantized.h"

namespace hetnn::ir {
namespace {

Bindings bind(const Graph& graph, std::span<const Tensor> inputs) {
  const std::vector<Value*> declared = graph.inputs();
  if (inputs.size() != declared.size()) {
    throw InvalidModel(
        text("graph '", graph.name(), "' takes ", counted(declared.size(), "input"), "; got ", inputs.size(), "."));
  }
  Bindings out;
  auto refuse = [&](size_t k) {
    const Shape shape(inputs[k].shape().begin(), inputs[k].shape().end());
    throw InvalidModel(text("input '", declared[k]->name(), "' must be ", to_string(declared[k]->type()), "; got ",
                            to_string(ops::Type{inputs[k].dtype(), shape}), "."));
  };
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Shape& shape = declared[k]->shape();
    if (inputs[k].dtype() != declared[k]->dtype() || inputs[k].shape().size() != shape.size()) refuse(k);
    for (const Symbol& symbol : graph.symbols) {
      for (size_t d = 0; d < shape.size(); ++d) {
        if (shape[d] == Dim::symbol(symbol.name)) out.emplace(symbol.name, inputs[k].shape()[d]);
      }
    }
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Shape& shape = declared[k]->shape();
    for (size_t d = 0; d < shape.size(); ++d) {
      if (const auto found = solved(shape[d], inputs[k].shape()[d])) out.insert(*found);
    }
  }
  for (const Symbol& symbol : free_symbols(graph)) {
    auto at = out.find(symbol.name);
    if (at == out.end()) throw InvalidModel(text("no input's shape gives the symbol '", symbol.name, "' a value."));
    if (at->second < symbol.min || at->second > symbol.max) {
      throw InvalidModel(text("the dimension '", symbol.name, "' must be in [", symbol.min, ", ", symbol.max, "]; got ",
                              at->second, "."));
    }
  }
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (hetnn::evaluate(declared[k]->shape(), out) != inputs[k].shape()) refuse(k);
  }
  return out;
}

}  // namespace

std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs, const Observer& observer) {
  Bindings bindings = bind(graph, inputs);
  std::map<const Value*, Tensor> values;
  std::map<const Value*, size_t> readers;
  const std::vector<Value*> declared = graph.inputs();
  for (size_t k = 0; k < declared.size(); ++k) values[declared[k]] = inputs[k];
  for (const Value* output : graph.outputs()) ++readers[output];
  for (const Node* node : graph.nodes()) {
    for (const Value* input : node->inputs()) {
      if (input) ++readers[input];
    }
  }
  size_t begun = 0;
  for (const Node* node : graph.nodes()) {
    announce_parts(begun++, graph.node_count());
    std::vector<std::optional<Tensor>> operands;
    for (const Value* input : node->inputs())
      operands.push_back(input ? std::optional(values.at(input)) : std::nullopt);
    Bindings defined;
    const std::vector<Tensor> results = ops::evaluate(node->call(), operands, bindings, defined);
    for (const auto& [name, value] : defined) {
      const auto symbol = std::find_if(graph.symbols.begin(), graph.symbols.end(),
                                       [&name = name](const Symbol& candidate) { return candidate.name == name; });
      ops::check_range(node->call(), *symbol, value);
      bindings.emplace(name, value);
    }
    for (size_t k = 0; k < results.size(); ++k) {
      const Value* output = node->output(k);
      HETNN_ASSERT(
          results[k].dtype() == output->dtype() && results[k].shape() == hetnn::evaluate(output->shape(), bindings),
          describe(*node), " computed another type than it infers");
      if (observer) observer(*output, results[k]);
      if (readers[output] > 0) values[output] = results[k];
    }
    for (const Value* input : node->inputs()) {
      if (input && --readers[input] == 0) values.erase(input);
    }
  }
  std::vector<Tensor> out;
  for (const Value* output : graph.outputs()) out.push_back(values.at(output));
  return out;
}

}  // namespace hetnn::ir
