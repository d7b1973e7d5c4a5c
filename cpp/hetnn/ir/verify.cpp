// The rule sets of the stages.
#include "hetnn/ir/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ops/demand.h"

namespace hetnn::ir {
namespace {

// A user can write these down, so what does not fit is the model's fault.
void verify_mutation(const Graph& graph, const Mutation& mutation) {
  const Value* input = graph.find_value(mutation.input);
  const auto name = std::find(graph.output_names.begin(), graph.output_names.end(), mutation.output);
  if (!input || input->producer() || name == graph.output_names.end()) {
    throw InvalidModel(text("the state '", mutation.input, "' must be an input of the graph, and '", mutation.output,
                            "' one of its outputs."));
  }
  const Value* output = graph.outputs()[static_cast<size_t>(name - graph.output_names.begin())];
  const std::vector<int64_t>& shape = mutation.initial.shape();
  const Type initial{mutation.initial.dtype(), Shape(shape.begin(), shape.end()), input->type().quant};
  if (input->type() != output->type() || input->type() != initial) {
    throw InvalidModel(text("the state '", mutation.input, "' must keep one type of fixed shape; it is ",
                            to_string(input->type()), ", its next value ", to_string(output->type()), ", its first ",
                            to_string(initial), "."));
  }
}

// The same holds for symbols that nodes define.
void verify_symbols(const Graph& graph) {
  const auto definers = ir::definers(graph);
  if (definers.empty()) return;
  std::set<std::string> given;
  for (const Value* input : graph.inputs()) {
    for (const Dim& dim : input->shape()) dim.collect_symbols(given);
  }
  for (const auto& [symbol, node] : definers) {
    const auto declared = std::count_if(graph.symbols.begin(), graph.symbols.end(),
                                        [&, name = symbol](const Symbol& candidate) { return candidate.name == name; });
    if (given.contains(symbol) || declared != 1) {
      throw InvalidModel(text(describe(*node), " defines the symbol '", symbol, "', which ",
                              declared != 1 ? "must be declared once." : "the shape of an input gives a value too.",
                              " Name another symbol."));
    }
  }
  std::set<std::string> known;
  for (const Node* node : graph.nodes()) {
    std::set<std::string> needed;
    ops::collect_needed_symbols(node->call(), needed);
    for (const std::string& symbol : needed) {
      if (known.contains(symbol) || !definers.contains(symbol)) continue;
      throw InvalidModel(text(describe(*node), " needs the symbol '", symbol, "' before ",
                              describe(*definers.at(symbol)), " defines it. Put it behind."));
    }
    for (const std::string& symbol : ops::defined_symbols(node->call())) {
      if (known.insert(symbol).second) continue;
      throw InvalidModel(text(describe(*node), " defines a symbol that ", describe(*definers.at(symbol)),
                              " defines before. Name another symbol."));
    }
  }
}

void verify_structure(const Graph& graph) {
  std::set<const Value*> known;
  std::map<const Value*, std::vector<Use>> uses;
  for (const Value* input : graph.inputs()) {
    known.insert(input);
    HETNN_ASSERT(graph.find_value(input->name()) == input, "the name '", input->name(), "' is not its input's");
  }
  for (Node* node : graph.nodes()) {
    for (size_t k = 0; k < node->inputs().size(); ++k) {
      Value* input = node->inputs()[k];
      if (!input) continue;
      HETNN_ASSERT(known.contains(input), describe(*node), " reads '", input->name(), "' before it is written");
      uses[input].push_back({node, k});
    }
    for (const auto& [name, attr] : node->attrs()) {
      const ops::AttrDef* def = node->op().find_attr(name);
      HETNN_ASSERT(def && def->kind == ops::attr_kind(attr), describe(*node), " attribute ", name);
    }
    for (const ops::AttrDef& def : node->op().attrs)
      HETNN_ASSERT(node->attrs().contains(def.name), describe(*node), " lacks ", def.name);
    const std::vector<Type> types = infer_types(node->call());
    HETNN_ASSERT(types.size() == node->outputs().size(), describe(*node), " has ", node->outputs().size(), " outputs");
    for (size_t k = 0; k < types.size(); ++k) {
      const Value* output = node->output(k);
      HETNN_ASSERT(types[k] == output->type(), "'", output->name(), "' is ", to_string(output->type()), " but infers ",
                   to_string(types[k]));
      HETNN_ASSERT(graph.find_value(output->name()) == output, "the name '", output->name(), "' is not its value's");
      HETNN_ASSERT(output->producer() == node, "'", output->name(), "' names another producer");
      known.insert(output);
    }
  }
  for (const Value* value : known) {
    auto at = uses.find(value);
    const std::vector<Use> found = at == uses.end() ? std::vector<Use>{} : at->second;
    HETNN_ASSERT(std::is_permutation(found.begin(), found.end(), value->uses().begin(), value->uses().end()),
                 "use list of '", value->name(), "' is wrong");
  }
  for (const Value* output : graph.outputs())
    HETNN_ASSERT(known.contains(output), "a graph output is no value of the graph");
  HETNN_ASSERT(graph.output_names.size() == graph.outputs().size());
  for (const Mutation& mutation : graph.mutations) verify_mutation(graph, mutation);
}

// Of a node that reads constants only: whether it has a reason not to be folded.
bool may_stay_unfolded(const Graph& graph, const Node& node) {
  int64_t bytes = 0;
  for (const Value* output : node.outputs()) {
    if (graph.is_output(output)) return true;
    bytes += elements(output->shape()).value() * dtype_bytes(output->dtype());
  }
  return bytes > kFoldLimitBytes;
}

void verify_canonical(const Graph& graph) {
  for (const Node* node : graph.nodes()) {
    const bool read = std::any_of(node->outputs().begin(), node->outputs().end(), [&](const Value* output) {
      return !output->uses().empty() || graph.is_output(output);
    });
    HETNN_ASSERT(read || ops::acts(node->call()), describe(*node), " is dead");
    if (node->inputs().empty()) continue;
    bool varies = false;
    for (size_t k = 0; k < node->inputs().size(); ++k) varies |= node->input(k) && !node->constant_input(k);
    std::set<std::string> symbols;
    ops::collect_symbols(node->call(), symbols);
    varies |= !symbols.empty();
    if (!varies && may_stay_unfolded(graph, *node)) continue;
    HETNN_ASSERT(varies, describe(*node), " reads constants only and is not folded");
  }
}

void verify_cut(const Graph& graph) {
  std::map<int, std::string> devices;
  int current = -1;
  for (const Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    HETNN_ASSERT(node->subgraph >= 0, describe(*node), " is in no subgraph");
    auto [at, fresh] = devices.emplace(node->subgraph, node->device);
    HETNN_ASSERT(at->second == node->device, describe(*node), " on ", node->device, " in a subgraph on ", at->second);
    HETNN_ASSERT(fresh || node->subgraph == current, "subgraph ", node->subgraph, " is not contiguous at ",
                 describe(*node));
    current = node->subgraph;
  }
}

void verify_fused(const Graph& graph) {
  std::map<int, int> subgraph_of;
  for (const Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    HETNN_ASSERT(node->launch >= 0, describe(*node), " is in no launch");
    HETNN_ASSERT(subgraph_of.emplace(node->launch, node->subgraph).first->second == node->subgraph, "launch ",
                 node->launch, " spans subgraphs");
  }
}

}  // namespace

void verify(const Graph& graph) {
  verify_structure(graph);
  verify_symbols(graph);
  if (graph.stage >= Stage::canonical) verify_canonical(graph);
  if (graph.stage >= Stage::placed) {
    for (const Node* node : graph.nodes()) {
      HETNN_ASSERT(node->is_constant() || !node->device.empty(), describe(*node), " is on no device");
    }
  }
  if (graph.stage >= Stage::cut) verify_cut(graph);
  if (graph.stage >= Stage::fused) verify_fused(graph);
}

}  // namespace hetnn::ir
