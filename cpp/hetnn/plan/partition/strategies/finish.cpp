// From a draft to the plan that is handed out: the lists of every subgraph, crossings, figures and the schedule.
#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "hetnn/plan/partition/problem/prefetch.h"
#include "hetnn/plan/partition/strategies/instance.h"
#include "hetnn/plan/partition/strategies/lists.h"
#include "hetnn/plan/partition/strategies/partition.h"
#include "hetnn/plan/partition/strategies/runs.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// Starts every subgraph as soon as its device is free and its inputs have arrived. A link moves one value at a time.
void schedule(const Problem& problem, PartitionResult& result) {
  const size_t devices = problem.devices.size();
  std::vector<double> device_free(devices, 0), link_free(devices * devices, 0);
  std::vector<int32_t> first_crossing(problem.ids.size() + 1, 0);
  for (const PartitionCrossing& c : result.crossings) ++first_crossing[index(c.node) + 1];
  std::partial_sum(first_crossing.begin(), first_crossing.end(), first_crossing.begin());
  // When each crossing has arrived, and where it goes.
  struct Arrival {
    double us = 0;
    int32_t to_device = 0;
  };
  std::vector<Arrival> arrivals(result.crossings.size());
  const auto for_each_crossing = [&](int32_t v, const auto& visit) {
    for (int32_t c = first_crossing[index(v)]; c < first_crossing[index(v) + 1]; ++c) visit(index(c));
  };
  // Values lie anywhere in the problem: asks early for what crosses of those that come soon, in either list.
  const auto prefetch_crossings = [&](const NodeLists& lists, int32_t i, const auto& places)
      __attribute__((always_inline)) {
    constexpr size_t kAhead = 8;
    prefetch(&first_crossing[index(later(lists.nodes, index(i), 2 * kAhead))]);
    prefetch(places.data() + first_crossing[index(later(lists.nodes, index(i), kAhead))]);
  };
  for (size_t s = 0; s < result.subgraphs.size(); ++s) {
    PartitionSubgraph& subgraph = result.subgraphs[s];
    // Producers on the same device ran before: the device was busy with them.
    const auto d = index(subgraph.device);
    subgraph.start_us = device_free[d];
    for (int32_t i = result.inputs.begin[s]; i < result.inputs.begin[s + 1]; ++i) {
      prefetch_crossings(result.inputs, i, arrivals);
      for_each_crossing(result.inputs.nodes[index(i)], [&](size_t c) {
        if (arrivals[c].to_device == subgraph.device) subgraph.start_us = std::max(subgraph.start_us, arrivals[c].us);
      });
    }
    subgraph.finish_us = subgraph.start_us + subgraph.predicted_us;
    device_free[d] = subgraph.finish_us;
    result.makespan_us = std::max(result.makespan_us, subgraph.finish_us);
    for (int32_t i = result.outputs.begin[s]; i < result.outputs.begin[s + 1]; ++i) {
      prefetch_crossings(result.outputs, i, result.crossings);
      for_each_crossing(result.outputs.nodes[index(i)], [&](size_t c) {
        const PartitionCrossing& crossing = result.crossings[c];
        double& free = link_free[d * devices + index(crossing.to_device)];
        free = std::max(free, subgraph.finish_us) + crossing.transfer_us;
        arrivals[c] = {free, crossing.to_device};
      });
    }
  }
}

/// Sorts the nodes of a list, of n there are: long lists by a sweep over all n.
void sort_nodes(std::span<int32_t> nodes, size_t n, std::vector<uint64_t>& bits) {
  constexpr size_t kWordsPerNode = 8;
  const size_t words = (n + 63) / 64;
  if (words > nodes.size() * kWordsPerNode) {
    std::sort(nodes.begin(), nodes.end());
    return;
  }
  bits.assign(words, 0);
  for (const int32_t v : nodes) bits[index(v) / 64] |= uint64_t{1} << (index(v) % 64);
  size_t count = 0;
  for (size_t k = 0; k < words; ++k) {
    for (uint64_t word = bits[k]; word != 0; word &= word - 1)
      nodes[count++] = static_cast<int32_t>(k * 64) + std::countr_zero(word);
  }
}

/// A value, by its node in the problem, that another device reads.
struct Crossing {
  int32_t node, to_device;
};

/// The crossings by node and device, with their figures.
std::vector<PartitionCrossing> sort_crossings(const Problem& p, const std::vector<int32_t>& device_of,
                                              const std::vector<Crossing>& crossings) {
  std::vector<int32_t> next(p.ids.size() + 1, 0);
  for (const Crossing& c : crossings) ++next[index(c.node) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<Crossing> sorted(crossings.size());
  for (const Crossing& c : crossings) sorted[index(next[index(c.node)]++)] = c;
  std::vector<PartitionCrossing> out;
  out.reserve(sorted.size());
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    const auto end = std::find_if(begin, sorted.end(), [&](const Crossing& c) { return c.node != begin->node; });
    std::sort(begin, end, [](const Crossing& a, const Crossing& b) { return a.to_device < b.to_device; });
    for (; begin != end; ++begin) {
      const int32_t from = device_of[index(begin->node)];
      out.push_back({begin->node, from, begin->to_device, p.output_bytes[index(begin->node)],
                     p.transfer_us(begin->node, from, begin->to_device)});
    }
  }
  return out;
}

/// A node that belongs in a list of a subgraph.
struct Entry {
  int32_t subgraph, node;
};

NodeLists lists_of(const std::vector<Entry>& entries, size_t subgraphs) {
  return make_lists(subgraphs, [&](const auto& enter) {
    for (const Entry& e : entries) enter(e.subgraph, e.node);
  });
}

void sort_lists(NodeLists& lists, size_t n) {
  std::vector<uint64_t> bits;
  const std::span<int32_t> nodes = lists.nodes;
  for (size_t s = 0; s < lists.size(); ++s) {
    const auto begin = index(lists.begin[s]);
    sort_nodes(nodes.subspan(begin, index(lists.begin[s + 1]) - begin), n, bits);
  }
}

/// The objective: node times + launches + one transfer per value and other device that reads it.
double cost_us(const Problem& problem, const PartitionResult& result) {
  double total = 0;
  for (const PartitionSubgraph& s : result.subgraphs) total += s.predicted_us;
  for (const PartitionCrossing& c : result.crossings) {
    total += problem.transfer_us(c.node, c.from_device, c.to_device);
  }
  return total;
}

}  // namespace

void price_again(const Problem& problem, PartitionResult& result) {
  for (size_t s = 0; s < result.subgraphs.size(); ++s) {
    PartitionSubgraph& subgraph = result.subgraphs[s];
    subgraph.predicted_us = problem.devices[index(subgraph.device)].launch_us;
    for (const int32_t node : result.nodes[s]) subgraph.predicted_us += problem.time_of(node, subgraph.device);
  }
  result.cost_us = cost_us(problem, result);
  result.cut_us = std::min(result.cut_us, result.cost_us);
  result.lower_bound_us = std::min(result.lower_bound_us, result.cost_us);
  result.makespan_us = 0;
  schedule(problem, result);
}

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
  std::vector<Entry> inputs, outputs;
  outputs.reserve(n);
  inputs.reserve(instance.in_nodes.size());
  std::vector<int32_t> stamp(p.devices.size(), -1);
  // What is asked of a subgraph for every node: its device, its time so far, and the last value it was seen to read.
  struct Visit {
    int32_t device = -1, seen = -1;
    double us = 0;
  };
  std::vector<Visit> visits(result.subgraphs.size());
  std::vector<Crossing> crossings;
  // Along the edges, where neighbours lie close together; the lists are brought into the problem's order afterwards.
  constexpr size_t kAhead = 8;
  for (int32_t v = 0; v < instance.size; ++v) {
    const Place here = places[index(v)];
    prefetch(&visits[static_cast<size_t>(places[std::min(index(v) + kAhead, n - 1)].subgraph)]);
    const int32_t node = instance.node_of[index(v)];
    const auto soon = index(later(instance.node_of, index(v), 2 * kAhead));
    prefetch(&result.device_of[soon]);
    prefetch(&result.subgraph_of[soon]);
    Visit& visit = visits[index(here.subgraph)];
    result.device_of[index(node)] = here.device;
    result.subgraph_of[index(node)] = here.subgraph;
    if (visit.device < 0) {
      visit.device = here.device;
      visit.us = instance.launch_us[index(here.device)];
    }
    visit.us += instance.time(v, here.device);
    const int32_t begin = instance.out_begin[index(v)];
    const int32_t end = instance.out_begin[index(v) + 1];
    bool leaves = begin == end;
    for (auto edge = static_cast<size_t>(begin); edge < static_cast<size_t>(end); ++edge) {
      prefetch(&places[index(later(instance.out_nodes, edge, 2 * kAhead))]);
      const Place next = places[index(later(instance.out_nodes, edge, kAhead))];
      prefetch(&visits[index(next.subgraph)]);
      const Place reader = places[static_cast<size_t>(instance.out_nodes[edge])];
      if (reader.subgraph == here.subgraph) continue;
      leaves = true;
      if (int32_t& seen = visits[index(reader.subgraph)].seen; seen != v) {
        seen = v;
        inputs.push_back({reader.subgraph, node});
      }
      if (reader.device == here.device || stamp[index(reader.device)] == v) continue;
      stamp[index(reader.device)] = v;
      crossings.push_back({node, reader.device});
    }
    if (leaves) outputs.push_back({here.subgraph, node});
  }
  for (size_t s = 0; s < visits.size(); ++s) {
    result.subgraphs[s].device = visits[s].device;
    result.subgraphs[s].predicted_us = visits[s].us;
  }
  result.nodes = make_lists(visits.size(), [&](const auto& enter) {
    for (size_t v = 0; v < n; ++v) enter(draft.subgraph_of[v], instance.node_of[v]);
  });
  result.inputs = lists_of(inputs, visits.size());
  result.outputs = lists_of(outputs, visits.size());
  result.crossings = sort_crossings(p, result.device_of, crossings);
  sort_lists(result.inputs, n);
  sort_lists(result.outputs, n);
  result.lower_bound_subgraphs = fewest_subgraphs(instance, draft.colour);
  result.cost_us = cost_us(p, result);
  schedule(p, result);
  return result;
}

}  // namespace hetnn::plan
