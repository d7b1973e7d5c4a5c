// A validated problem as the strategies see it: nodes in topological order, both directions of every edge, and only the
// devices each node may really use. Internal to the partitioner.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hetnn/plan/partition/problem/problem.h"
#include "hetnn/plan/partition/problem/topology.h"
#include "hetnn/plan/partition/strategies/partition.h"

namespace hetnn::plan {

/// Node numbers here are topological positions: every input of v is below v.
struct Instance : Topology {
  const Problem* problem = nullptr;
  int32_t size = 0;
  int32_t device_count = 0;
  /// [v * device_count + d]: microseconds; kUnsupported where v may not run on d, for support, pins, strict or because
  /// it could never be exported from there.
  std::vector<double> time_us;
  std::vector<double> output_bytes;
  /// [v * device_count + d]: 1 where v may not be an output of a subgraph of d. Empty when every node may.
  std::vector<uint8_t> trapped;
  /// 1 where a supporting device was taken from v only because its value could never leave there. Empty as `trapped`.
  std::vector<uint8_t> walled_in;
  std::vector<double> launch_us;
  /// [from * device_count + to]
  std::vector<double> latency_us, us_per_byte;
  /// Whether every node may run on the general processor.
  bool general_runs_all = true;
  bool any_connected = false;
  bool any_budget = false;

  std::span<const int32_t> inputs(int32_t v) const {
    return {in_nodes.data() + in_begin[static_cast<size_t>(v)], in_nodes.data() + in_begin[static_cast<size_t>(v) + 1]};
  }
  std::span<const int32_t> consumers(int32_t v) const {
    return {out_nodes.data() + out_begin[static_cast<size_t>(v)],
            out_nodes.data() + out_begin[static_cast<size_t>(v) + 1]};
  }
  double time(int32_t v, int32_t d) const {
    return time_us[static_cast<size_t>(v) * static_cast<size_t>(device_count) + static_cast<size_t>(d)];
  }
  bool allowed(int32_t v, int32_t d) const { return time(v, d) < kUnsupported; }
  bool is_trapped(int32_t v, int32_t d) const {
    return !trapped.empty() &&
           trapped[static_cast<size_t>(v) * static_cast<size_t>(device_count) + static_cast<size_t>(d)] != 0;
  }
  double transfer(int32_t v, int32_t from, int32_t to) const {
    const size_t k = static_cast<size_t>(from) * static_cast<size_t>(device_count) + static_cast<size_t>(to);
    return latency_us[k] + output_bytes[static_cast<size_t>(v)] * us_per_byte[k];
  }
  double weight_bytes(int32_t v) const { return problem->weight_of(node_of[static_cast<size_t>(v)]); }
  bool compute(int32_t v) const { return problem->compute[static_cast<size_t>(node_of[static_cast<size_t>(v)])] != 0; }
  double macs(int32_t v) const { return problem->macs[static_cast<size_t>(node_of[static_cast<size_t>(v)])]; }
  const std::string& id(int32_t v) const { return problem->ids[static_cast<size_t>(node_of[static_cast<size_t>(v)])]; }
};

/// Prunes a validated problem. Soft pins that cannot be kept are dropped with a note, all of them when
/// `keep_soft_pins` is false. Unsupported as `partition` says.
Instance make_instance(const Problem& problem, Topology sorted, const Options& options, bool keep_soft_pins,
                       std::vector<PartitionNote>& notes);

/// A plan as the strategies build it: a device for each node and the subgraphs numbered in a valid order.
struct Draft {
  std::vector<int32_t> colour;
  std::vector<int32_t> subgraph_of;
  int32_t subgraph_count = 0;
};

/// From a draft to the plan: problem indices, interfaces, crossings, figures, schedule. Not checked yet.
PartitionResult finish_plan(const Instance& instance, const Draft& draft);

/// The objective of a draft.
double draft_cost_us(const Instance& instance, const Draft& draft);
/// Node times and transfers of colours, without launches.
double colours_cost_us(const Instance& instance, const std::vector<int32_t>& colour);

}  // namespace hetnn::plan
