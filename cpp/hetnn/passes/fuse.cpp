// Launches by the rule of the deepest producer.
#include "hetnn/passes/fuse.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/passes/combine.h"
#include "hetnn/passes/moving.h"
#include "hetnn/target/target.h"

namespace hetnn::passes {
namespace {

bool read_by_one_node(const ir::Graph& graph, const ir::Value& value) {
  if (graph.is_output(&value) || value.uses().empty()) return false;
  const ir::Node* reader = value.uses().front().node;
  return std::all_of(value.uses().begin(), value.uses().end(), [&](const ir::Use& use) { return use.node == reader; });
}

// Whether outputs behind the first are read, which a launch writes as its first node makes them.
bool has_more_results(const ir::Graph& graph, const ir::Node& node) {
  return std::ranges::any_of(node.outputs() | std::views::drop(1), [&](const ir::Value* output) {
    return !output->uses().empty() || graph.is_output(output);
  });
}

}  // namespace

double bytes_of(const std::vector<const ir::Node*>& nodes, const Bindings& hints) {
  const std::set<const ir::Node*> inside(nodes.begin(), nodes.end());
  std::set<const ir::Value*> counted;
  double sum = 0;
  for (const ir::Node* node : nodes) {
    for (const ir::Value* input : node->inputs()) {
      if (input && !inside.contains(input->producer()) && counted.insert(input).second)
        sum += static_cast<double>(target::value_bytes(*input, hints));
    }
  }
  const auto written = [&](const ir::Value* output) {
    sum += static_cast<double>(target::value_bytes(*output, hints));
  };
  std::ranges::for_each(nodes.back()->outputs(), written);
  if (nodes.size() > 1) std::ranges::for_each(nodes.front()->outputs() | std::views::drop(1), written);
  return sum;
}

std::vector<std::pair<const ir::Node*, int>> depths(const ir::Graph& graph) {
  std::map<const ir::Node*, int> depth;
  std::vector<std::pair<const ir::Node*, int>> out;
  for (const ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    int deepest = 0;
    for (const ir::Value* input : node->inputs()) {
      if (!input) continue;
      const auto producer = depth.find(input->producer());
      if (producer != depth.end()) deepest = std::max(deepest, producer->second + 1);
    }
    depth[node] = deepest;
    out.emplace_back(node, deepest);
  }
  return out;
}

std::vector<std::vector<const ir::Node*>> chains_of(const ir::Graph& graph) {
  std::map<int, std::vector<const ir::Node*>> open;
  for (const ir::Node* node : graph.nodes())
    if (!node->is_constant()) open[node->launch].push_back(node);
  std::vector<std::vector<const ir::Node*>> out;
  out.reserve(open.size());
  for (const ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    auto& nodes = open[node->launch];
    if (nodes.empty()) continue;
    const ir::Node* ready = has_more_results(graph, *nodes.front()) ? nodes.front() : nodes.back();
    if (ready == node) out.push_back(std::exchange(nodes, {}));
  }
  return out;
}

std::vector<report::FusionRow> fuse(ir::Graph& graph, const FuseOptions& options) {
  HETNN_ASSERT(!options.enabled || options.can_follow, "fusion needs to know what can follow what");
  std::map<const ir::Node*, CombinedLayer> layers;
  if (options.enabled && options.combines) {
    move_less(graph);
    layers = combine(graph, options);
  }
  std::vector<std::vector<const ir::Node*>> launches;
  // Greater means: join rather. Deeper first, then earlier in the graph.
  std::map<const ir::Node*, std::pair<int, int>> rank;
  for (const auto& [node, level] : depths(graph)) rank[node] = {level, -static_cast<int>(rank.size())};
  // Whether all that a node reads but `main` is written before another node.
  const auto is_there_before = [&](const ir::Node& node, const ir::Value& main, const ir::Node& before) {
    return std::ranges::all_of(node.inputs(), [&](const ir::Value* input) {
      const auto producer = input && input != &main ? rank.find(input->producer()) : rank.end();
      return producer == rank.end() || producer->second.second > rank.at(&before).second;
    });
  };
  for (ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    const ir::Node* joined = nullptr;
    if (options.enabled) {
      for (const ir::Value* input : node->inputs()) {
        const ir::Node* producer = input ? input->producer() : nullptr;
        if (!producer || producer->is_constant() || input != producer->output(0)) continue;
        if (producer->subgraph != node->subgraph || !read_by_one_node(graph, *input)) continue;
        if (joined && rank.at(producer) <= rank.at(joined)) continue;
        // The producer is its launch's last node: whoever followed it would be a second reader of `input`.
        const auto& launch = launches[static_cast<size_t>(producer->launch)];
        if (has_more_results(graph, *launch.front()) && !is_there_before(*node, *input, *launch.front())) continue;
        if (options.can_follow(launch, *node)) joined = producer;
      }
    }
    if (joined) {
      node->launch = joined->launch;
    } else {
      node->launch = static_cast<int>(launches.size());
      launches.emplace_back();
    }
    launches[static_cast<size_t>(node->launch)].push_back(node);
  }
  if (graph.stage < ir::Stage::fused) graph.stage = ir::Stage::fused;

  const Bindings hints = graph.hints();
  std::vector<report::FusionRow> rows;
  for (const auto& nodes : launches) {
    report::FusionRow row{{}, {}, 0, bytes_of(nodes, hints)};
    for (const ir::Node* node : nodes) {
      if (const auto layer = layers.find(node); layer != layers.end()) {
        row.nodes.insert(row.nodes.end(), layer->second.nodes.begin(), layer->second.nodes.end());
        row.bytes_before += layer->second.bytes_before;
      } else {
        row.nodes.push_back(node->name());
        row.bytes_before += bytes_of({node}, hints);
      }
    }
    if (row.nodes.size() < 2) continue;
    row.into = row.nodes.front();
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace hetnn::passes
