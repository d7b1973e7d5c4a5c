// Cutting a placed graph into subgraphs, and taking one subgraph out as a graph of its own.
#include "hetnn/plan/cut.h"

#include <algorithm>
#include <map>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ir/verify.h"
#include "hetnn/ops/demand.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::plan {
namespace {

/// What the nodes of `subgraph` read from outside and what is read of them there; `inside` tells its nodes from others.
template <typename Inside>
void add_interface(const ir::Graph& graph, Subgraph& subgraph, const Inside& inside) {
  std::set<const ir::Value*> seen;
  for (const ir::Node* node : subgraph.nodes) {
    for (ir::Value* input : node->inputs()) {
      if (!input || !seen.insert(input).second) continue;
      const ir::Node* producer = input->producer();
      if (!producer || (!producer->is_constant() && !inside(producer))) subgraph.inputs.push_back(input);
    }
    const bool acts = ops::acts(node->call());
    for (ir::Value* output : node->outputs()) {
      // Of a node that defines symbols or asks for something, though nobody reads it, so that it is not taken for dead.
      const bool leaves = acts || std::any_of(output->uses().begin(), output->uses().end(),
                                              [&](const ir::Use& use) { return !inside(use.node); });
      if (leaves || graph.is_output(output)) subgraph.outputs.push_back(output);
    }
  }
}

}  // namespace

void cut(ir::Graph& graph, const std::vector<Placement>& placements) {
  ir::Rewriter rewriter(graph);
  std::vector<ir::Node*> constants;
  for (ir::Node* node : graph.nodes()) {
    if (node->is_constant()) constants.push_back(node);
  }
  HETNN_ASSERT(constants.size() + placements.size() == graph.node_count(), placements.size(), " placements for ",
               graph.node_count() - constants.size(), " nodes");
  for (ir::Node* node : constants) rewriter.move_before(node, nullptr);
  for (const Placement& placement : placements) {
    placement.node->device = placement.device;
    placement.node->subgraph = placement.subgraph;
    rewriter.move_before(placement.node, nullptr);
  }
  graph.stage = ir::Stage::cut;
  ir::verify(graph);
}

void split_at_definitions(std::vector<Placement>& placements) {
  int shift = 0;
  for (auto begin = placements.begin(); begin != placements.end();) {
    const int number = begin->subgraph;
    const auto end = std::find_if(begin, placements.end(), [&](const Placement& p) { return p.subgraph != number; });
    // How many definitions, one behind the other, a node waits for inside its subgraph.
    std::map<const ir::Node*, int> level;
    std::map<std::string, int> level_of;  // behind the definition of a symbol
    for (auto at = begin; at != end; ++at) {
      int& own = level[at->node];
      for (const ir::Value* input : at->node->inputs()) {
        if (!input || !input->producer()) continue;
        if (const auto producer = level.find(input->producer()); producer != level.end())
          own = std::max(own, producer->second);
      }
      std::set<std::string> needed;
      if (!level_of.empty()) ops::collect_needed_symbols(at->node->call(), needed);
      for (const std::string& symbol : needed) {
        if (const auto definition = level_of.find(symbol); definition != level_of.end())
          own = std::max(own, definition->second);
      }
      for (std::string& symbol : ops::defined_symbols(at->node->call())) level_of[std::move(symbol)] = own + 1;
    }
    std::stable_sort(begin, end, [&](const Placement& a, const Placement& b) { return level[a.node] < level[b.node]; });
    for (auto at = begin; at != end; ++at) at->subgraph += shift + level[at->node];
    shift += level[std::prev(end)->node];
    begin = end;
  }
}

std::vector<Subgraph> subgraphs_of(const ir::Graph& graph) {
  std::vector<Subgraph> out;
  for (ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    const auto index = static_cast<size_t>(node->subgraph);
    if (out.size() <= index) out.resize(index + 1);
    out[index].device = node->device;
    out[index].nodes.push_back(node);
  }
  for (size_t k = 0; k < out.size(); ++k)
    add_interface(graph, out[k], [k](const ir::Node* node) { return node->subgraph == static_cast<int>(k); });
  return out;
}

Subgraph subgraph_of_nodes(const ir::Graph& graph, std::string device, std::vector<ir::Node*> nodes) {
  Subgraph out{std::move(device), std::move(nodes), {}, {}};
  const std::set<const ir::Node*> members(out.nodes.begin(), out.nodes.end());
  add_interface(graph, out, [&](const ir::Node* node) { return members.contains(node); });
  return out;
}

bool passes_as_image(const ir::Graph& model, const ir::Value& value) {
  return ops::is_feature_map(value.type()) && value.producer() && !model.is_output(&value) &&
         ops::defined_symbols(value.producer()->call()).empty();
}

ir::Graph extract(const ir::Graph& graph, const Subgraph& subgraph) {
  ir::Graph out(graph.name());
  out.symbols = graph.symbols;
  ir::Rewriter rewriter(out);
  std::map<const ir::Value*, ir::Value*> twin;
  for (const ir::Value* input : subgraph.inputs) twin[input] = rewriter.add_input(input->name(), input->type());
  for (const ir::Node* node : subgraph.nodes) {
    for (const ir::Value* input : node->inputs()) {
      if (input && input->producer() && input->producer()->is_constant() && !twin.contains(input))
        rewriter.copy(*input->producer(), twin);
    }
  }
  for (const ir::Node* node : subgraph.nodes) rewriter.copy(*node, twin);
  for (const ir::Value* output : subgraph.outputs) rewriter.add_output(twin.at(output), output->name());
  ir::drop_unused_symbols(out);
  out.stage = ir::Stage::cut;
  return out;
}

}  // namespace hetnn::plan
