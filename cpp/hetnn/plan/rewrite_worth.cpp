// What each rewriting is worth by itself: the plan as it is, against the same plan with that node left as written.
#include <algorithm>
#include <set>

#include "hetnn/plan/network.h"

namespace hetnn::plan {
namespace {

// Where the nodes of the graph before rewriting are now, and who reads them.
struct Written {
  const Problem& problem;
  std::vector<std::vector<int32_t>> readers;
  std::vector<int32_t> device_of, subgraph_of;

  std::span<const int32_t> inputs(int32_t node) const {
    const auto begin = static_cast<size_t>(problem.input_begin[static_cast<size_t>(node)]);
    const auto end = static_cast<size_t>(problem.input_begin[static_cast<size_t>(node) + 1]);
    return {problem.inputs.data() + begin, end - begin};
  }
  const std::vector<int32_t>& readers_of(int32_t node) const { return readers[static_cast<size_t>(node)]; }
  int32_t& device(int32_t node) { return device_of[static_cast<size_t>(node)]; }
};

// A rewritten node has left its name to what took its place. A node without a namesake was absorbed by a reader of its.
Written locate(const NetworkPlan& written, const NetworkPlan& plan) {
  Written out{written.problem, {}, {}, {}};
  const auto size = static_cast<size_t>(written.problem.size());
  out.readers.resize(size);
  out.device_of.resize(size, 0);
  out.subgraph_of.resize(size, -1);
  std::map<std::string_view, size_t> index;
  for (size_t k = 0; k < plan.nodes.size(); ++k) index.emplace(plan.nodes[k]->name(), k);
  for (size_t k = size; k-- > 0;) {
    for (const int32_t input : out.inputs(static_cast<int32_t>(k))) {
      out.readers[static_cast<size_t>(input)].push_back(static_cast<int32_t>(k));
    }
    if (const auto now = index.find(written.nodes[k]->name()); now != index.end()) {
      out.device_of[k] = plan.result.device_of[now->second];
      out.subgraph_of[k] = plan.result.subgraph_of[now->second];
    } else if (!out.readers[k].empty()) {
      const auto reader = static_cast<size_t>(out.readers[k].back());
      out.device_of[k] = out.device_of[reader];
      out.subgraph_of[k] = out.subgraph_of[reader];
    }
  }
  return out;
}

struct Traffic {
  double bytes = 0;
  double us = 0;
};

// What the inputs and the outputs of a node cross, wherever it and its neighbours are.
Traffic traffic_around(Written& written, int32_t node) {
  Traffic out;
  const auto add = [&](int32_t value) {
    std::set<int32_t> others;
    for (const int32_t reader : written.readers_of(value)) others.insert(written.device(reader));
    others.erase(written.device(value));
    for (const int32_t other : others) {
      out.bytes += written.problem.output_bytes[static_cast<size_t>(value)];
      out.us += written.problem.transfer_us(value, written.device(value), other);
    }
  };
  for (const int32_t input : written.inputs(node)) add(input);
  add(node);
  return out;
}

// Subgraphs of the node's device that its leaving would make: it parts what comes before it from what comes after it,
// and takes away a subgraph of which it is all.
int32_t launches_made_by_leaving(const Written& written, int32_t node) {
  const int32_t subgraph = written.subgraph_of[static_cast<size_t>(node)];
  const auto shares_it = [&](int32_t other) { return written.subgraph_of[static_cast<size_t>(other)] == subgraph; };
  const std::span<const int32_t> inputs = written.inputs(node);
  const std::vector<int32_t>& readers = written.readers_of(node);
  const bool before = std::any_of(inputs.begin(), inputs.end(), shares_it);
  const bool after = std::any_of(readers.begin(), readers.end(), shares_it);
  if (before && after) return 1;
  return std::count(written.subgraph_of.begin(), written.subgraph_of.end(), subgraph) == 1 ? -1 : 0;
}

int32_t accelerator_launches(const NetworkPlan& plan) {
  const auto& subgraphs = plan.result.subgraphs;
  return static_cast<int32_t>(
      std::count_if(subgraphs.begin(), subgraphs.end(), [](const auto& subgraph) { return subgraph.device != 0; }));
}

double crossing_bytes(const NetworkPlan& plan) {
  double sum = 0;
  for (const PartitionCrossing& crossing : plan.result.crossings) sum += crossing.bytes;
  return sum;
}

}  // namespace

void add_worth(const NetworkPlan& before, const NetworkPlan& plan, std::vector<report::RewriteRow>& rows) {
  Written written = locate(before, plan);
  std::map<std::string_view, int32_t> index;
  for (size_t k = 0; k < before.nodes.size(); ++k) index.emplace(before.nodes[k]->name(), static_cast<int32_t>(k));
  for (report::RewriteRow& row : rows) {
    const int32_t node = index.at(row.node), device = written.device(node);
    row.predicted_us_before = before.problem.time_of(node, 0);
    if (device == 0) continue;
    const Traffic with = traffic_around(written, node);
    written.device(node) = 0;
    const Traffic without = traffic_around(written, node);
    written.device(node) = device;
    row.bytes_avoided = without.bytes - with.bytes;
    row.launches_avoided = launches_made_by_leaving(written, node);
    row.predicted_us_before +=
        without.us - with.us + row.launches_avoided * before.problem.devices[static_cast<size_t>(device)].launch_us;
  }
}

std::set<std::string, std::less<>> doubtful_rewrites(const NetworkPlan& plan,
                                                     const std::vector<report::RewriteRow>& rows) {
  constexpr double kLittle = 1.25;  // its time as written, transfers and launches, to its time as rewritten
  std::set<std::string_view> on_general;
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    if (plan.result.device_of[k] == 0) on_general.insert(plan.nodes[k]->name());
  }
  std::set<std::string, std::less<>> out;
  for (const report::RewriteRow& row : rows) {
    if (on_general.contains(row.node) || row.predicted_us_before < kLittle * row.predicted_us_after)
      out.insert(row.node);
  }
  return out;
}

report::RewritingTotals rewriting_totals(const NetworkPlan& without, const NetworkPlan& plan) {
  return {crossing_bytes(without) - crossing_bytes(plan), accelerator_launches(without) - accelerator_launches(plan),
          without.result.cost_us, plan.result.cost_us};
}

}  // namespace hetnn::plan
