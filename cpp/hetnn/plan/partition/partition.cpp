// The entry to planning: instance, strategy, interfaces and schedule of the subgraphs, check.
#include "hetnn/plan/partition/partition.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/fetch.h"
#include "hetnn/plan/partition/group.h"
#include "hetnn/plan/partition/instance.h"
#include "hetnn/plan/partition/strategies.h"

namespace hetnn::plan {
namespace {

struct StrategyName {
  Strategy strategy;
  std::string_view name;
};
constexpr std::array<StrategyName, 6> kStrategies = {{{Strategy::topological, "topological"},
                                                      {Strategy::depth, "depth"},
                                                      {Strategy::merge, "merge"},
                                                      {Strategy::cost, "cost"},
                                                      {Strategy::take_all, "take-all"},
                                                      {Strategy::cpu_only, "cpu-only"}}};

/// Starts every subgraph as soon as its device is free and its inputs have arrived. A link moves one value at a time.
void schedule(const Problem& problem, PartitionResult& result) {
  const size_t devices = problem.devices.size();
  std::vector<double> device_free(devices, 0), link_free(devices * devices, 0);
  std::vector<int64_t> first_crossing(problem.ids.size() + 1, 0);
  for (const PartitionCrossing& c : result.crossings) ++first_crossing[static_cast<size_t>(c.node) + 1];
  for (size_t v = 0; v < problem.ids.size(); ++v) first_crossing[v + 1] += first_crossing[v];
  // When each crossing has arrived, and where it goes.
  struct Arrival {
    double us = 0;
    int32_t to_device = 0;
  };
  std::vector<Arrival> arrivals(result.crossings.size());
  const auto for_each_crossing = [&](int32_t v, const auto& visit) {
    for (int64_t c = first_crossing[static_cast<size_t>(v)]; c < first_crossing[static_cast<size_t>(v) + 1]; ++c)
      visit(static_cast<size_t>(c));
  };
  for (PartitionSubgraph& subgraph : result.subgraphs) {
    // Producers on the same device ran before: the device was busy with them.
    const auto d = static_cast<size_t>(subgraph.device);
    subgraph.start_us = device_free[d];
    for (const int32_t u : subgraph.inputs) {
      for_each_crossing(u, [&](size_t c) {
        if (arrivals[c].to_device == subgraph.device) subgraph.start_us = std::max(subgraph.start_us, arrivals[c].us);
      });
    }
    subgraph.finish_us = subgraph.start_us + subgraph.predicted_us;
    device_free[d] = subgraph.finish_us;
    result.makespan_us = std::max(result.makespan_us, subgraph.finish_us);
    for (const int32_t v : subgraph.outputs) {
      for_each_crossing(v, [&](size_t c) {
        const PartitionCrossing& crossing = result.crossings[c];
        double& free = link_free[d * devices + static_cast<size_t>(crossing.to_device)];
        free = std::max(free, subgraph.finish_us) + crossing.transfer_us;
        arrivals[c] = {free, crossing.to_device};
      });
    }
  }
}

/// Sorts the nodes of a list, of n there are: long lists by a sweep over all n.
void sort_nodes(std::vector<int32_t>& nodes, size_t n, std::vector<uint64_t>& bits) {
  constexpr size_t kWordsPerNode = 8;
  const size_t words = (n + 63) / 64;
  if (words > nodes.size() * kWordsPerNode) {
    std::sort(nodes.begin(), nodes.end());
    return;
  }
  bits.assign(words, 0);
  for (const int32_t v : nodes) bits[static_cast<size_t>(v) / 64] |= uint64_t{1} << (static_cast<size_t>(v) % 64);
  size_t count = 0;
  for (size_t k = 0; k < words; ++k) {
    for (uint64_t word = bits[k]; word != 0; word &= word - 1)
      nodes[count++] = static_cast<int32_t>(k * 64) + std::countr_zero(word);
  }
}

/// Crossings by node and device.
void sort_crossings(const std::vector<PartitionCrossing>& crossings, size_t n, std::vector<PartitionCrossing>& sorted) {
  std::vector<size_t> next(n + 1, 0);
  for (const PartitionCrossing& c : crossings) ++next[static_cast<size_t>(c.node) + 1];
  for (size_t v = 0; v < n; ++v) next[v + 1] += next[v];
  sorted.resize(crossings.size());
  for (const PartitionCrossing& c : crossings) sorted[next[static_cast<size_t>(c.node)]++] = c;
  // Those of one node stand together, in the order of its consumers.
  for (size_t k = 1; k < sorted.size(); ++k) {
    for (size_t i = k; i > 0 && sorted[i - 1].node == sorted[i].node && sorted[i - 1].to_device > sorted[i].to_device;
         --i)
      std::swap(sorted[i - 1], sorted[i]);
  }
}

/// A node that belongs in a list of a subgraph.
struct Entry {
  int32_t subgraph, node;
};

/// Fills a list of every subgraph with the nodes entered for it, in the order they were entered. Counted first: lists
/// that grow one by one would be moved about in memory.
void fill_lists(const std::vector<Entry>& entries, std::vector<PartitionSubgraph>& subgraphs,
                std::vector<int32_t> PartitionSubgraph::*list) {
  std::vector<size_t> end(subgraphs.size() + 1, 0);
  for (const Entry& e : entries) ++end[static_cast<size_t>(e.subgraph) + 1];
  for (size_t s = 0; s < subgraphs.size(); ++s) end[s + 1] += end[s];
  std::vector<int32_t> nodes(entries.size());
  for (const Entry& e : entries) nodes[end[static_cast<size_t>(e.subgraph)]++] = e.node;
  auto begin = nodes.begin();
  for (size_t s = 0; s < subgraphs.size(); ++s) {
    const auto stop = nodes.begin() + static_cast<std::ptrdiff_t>(end[s]);
    (subgraphs[s].*list).assign(begin, stop);
    begin = stop;
  }
}

}  // namespace

PartitionResult finish_plan(const Instance& instance, const Draft& draft) {
  const Problem& p = *instance.problem;
  const size_t n = p.ids.size();
  PartitionResult result;
  result.device_of.resize(n);
  result.subgraph_of.resize(n);
  result.subgraphs.resize(static_cast<size_t>(draft.subgraph_count));
  struct Place {
    int32_t subgraph, device;
  };
  std::vector<Place> places(n);
  for (size_t v = 0; v < n; ++v) places[v] = {draft.subgraph_of[v], draft.colour[v]};
  std::vector<Entry> nodes, inputs, outputs;
  nodes.reserve(n);
  outputs.reserve(n);
  inputs.reserve(instance.in_nodes.size());
  std::vector<int32_t> stamp(p.devices.size(), -1);
  // What is asked of a subgraph for every node: its device, its time so far, and the last value it was seen to read.
  struct Visit {
    int32_t device = -1, seen = -1;
    double us = 0;
  };
  std::vector<Visit> visits(result.subgraphs.size());
  std::vector<PartitionCrossing> crossings;
  // Along the edges, where neighbours lie close together; the lists are brought into the problem's order afterwards.
  constexpr size_t kAhead = 8;
  for (int32_t v = 0; v < instance.size; ++v) {
    const Place here = places[static_cast<size_t>(v)];
    fetch(&visits[static_cast<size_t>(places[std::min(static_cast<size_t>(v) + kAhead, n - 1)].subgraph)]);
    const int32_t node = instance.node_of[static_cast<size_t>(v)];
    Visit& visit = visits[static_cast<size_t>(here.subgraph)];
    result.device_of[static_cast<size_t>(node)] = here.device;
    result.subgraph_of[static_cast<size_t>(node)] = here.subgraph;
    if (visit.device < 0) {
      visit.device = here.device;
      visit.us = instance.launch_us[static_cast<size_t>(here.device)];
    }
    nodes.push_back({here.subgraph, node});
    visit.us += instance.time(v, here.device);
    const int32_t begin = instance.out_begin[static_cast<size_t>(v)];
    const int32_t end = instance.out_begin[static_cast<size_t>(v) + 1];
    bool leaves = begin == end;
    for (auto edge = static_cast<size_t>(begin); edge < static_cast<size_t>(end); ++edge) {
      fetch(&places[static_cast<size_t>(later(instance.out_nodes, edge, 2 * kAhead))]);
      const Place soon = places[static_cast<size_t>(later(instance.out_nodes, edge, kAhead))];
      fetch(&visits[static_cast<size_t>(soon.subgraph)]);
      const Place reader = places[static_cast<size_t>(instance.out_nodes[edge])];
      if (reader.subgraph == here.subgraph) continue;
      leaves = true;
      if (int32_t& seen = visits[static_cast<size_t>(reader.subgraph)].seen; seen != v) {
        seen = v;
        inputs.push_back({reader.subgraph, node});
      }
      if (reader.device == here.device || stamp[static_cast<size_t>(reader.device)] == v) continue;
      stamp[static_cast<size_t>(reader.device)] = v;
      const double bytes = instance.output_bytes[static_cast<size_t>(v)];
      const ProblemLink& link = p.link(here.device, reader.device);
      crossings.push_back({node, here.device, reader.device, bytes, link.latency_us + bytes / link.bytes_per_us});
    }
    if (leaves) outputs.push_back({here.subgraph, node});
  }
  for (size_t s = 0; s < visits.size(); ++s) {
    result.subgraphs[s].device = visits[s].device;
    result.subgraphs[s].predicted_us = visits[s].us;
  }
  fill_lists(nodes, result.subgraphs, &PartitionSubgraph::nodes);
  fill_lists(inputs, result.subgraphs, &PartitionSubgraph::inputs);
  fill_lists(outputs, result.subgraphs, &PartitionSubgraph::outputs);
  sort_crossings(crossings, n, result.crossings);
  std::vector<uint64_t> bits;
  for (PartitionSubgraph& s : result.subgraphs) {
    sort_nodes(s.inputs, n, bits);
    sort_nodes(s.outputs, n, bits);
  }
  result.lower_bound_subgraphs = fewest_subgraphs(instance, draft.colour);
  result.cost_us = partition_cost_us(p, result);
  schedule(p, result);
  return result;
}

namespace {

Draft run_strategy(const Instance& instance, const Options& options, CostTrace& trace) {
  switch (options.strategy) {
    case Strategy::topological:
      return plan_topological(instance, options.order);
    case Strategy::take_all:
      return draft_from_colours(instance, take_all_colours(instance));
    case Strategy::cpu_only:
      return draft_from_colours(instance, cpu_only_colours(instance));
    case Strategy::depth:
      return plan_depth(instance);
    case Strategy::merge:
      return plan_merge(instance, {options.settle, options.policy, options.measure, options.threshold});
    default:
      break;
  }
  Draft draft = plan_cost(instance, options.local_search, trace);
  return options.overlap ? plan_overlapped(instance, std::move(draft)) : draft;
}

}  // namespace

double partition_cost_us(const Problem& problem, const PartitionResult& result) {
  double total = 0;
  for (const PartitionSubgraph& s : result.subgraphs) total += s.predicted_us;
  for (const PartitionCrossing& c : result.crossings) {
    total += problem.transfer_us(c.node, c.from_device, c.to_device);
  }
  return total;
}

namespace {

PartitionResult plan_once(const Problem& problem, Topology sorted, const Options& options, bool keep_soft_pins) {
  std::vector<PartitionNote> notes;
  CostTrace trace;
  const Instance instance = make_instance(problem, std::move(sorted), options, keep_soft_pins, notes);
  const Draft draft = run_strategy(instance, options, trace);
  PartitionResult result = finish_plan(instance, draft);
  result.cut_us = trace.cut_us;
  result.lower_bound_us = trace.lower_bound_us;
  result.candidates = std::move(trace.candidates);
  result.notes = std::move(notes);
  return result;
}

/// Soft pins give way where no plan could be found with them.
PartitionResult plan_with_pins(const Problem& problem, Topology sorted, const Options& options) {
  const bool soft = std::any_of(problem.pins.begin(), problem.pins.end(),
                                [](const ProblemPin& pin) { return pin.device >= 0 && !pin.hard; });
  if (!soft) return plan_once(problem, std::move(sorted), options, true);
  std::string reason;
  try {
    return plan_once(problem, sorted, options, true);
  } catch (const Unsupported& error) {
    reason = error.what();
  } catch (const DoesNotFit& error) {
    reason = error.what();
  }
  PartitionResult result = plan_once(problem, std::move(sorted), options, false);
  result.notes.push_back({-1, "soft pins not kept: with them there is no plan: " + reason});
  return result;
}

}  // namespace

PartitionResult partition(const Problem& problem, const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  PartitionResult result = plan_with_pins(problem, validated_topology(problem), options);
  check_partition(problem, result);
  result.plan_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::string_view strategy_name(Strategy strategy) {
  for (const StrategyName& s : kStrategies) {
    if (s.strategy == strategy) return s.name;
  }
  HETNN_ASSERT(false, "strategy without a name");
}

Strategy strategy_from_name(std::string_view name) {
  std::string names;
  for (const StrategyName& s : kStrategies) {
    if (s.name == name) return s.strategy;
    names += std::string(names.empty() ? "" : ", ") + std::string(s.name);
  }
  throw InvalidModel(text("strategy: there is no '", name, "'; there are ", names, "."));
}

}  // namespace hetnn::plan
