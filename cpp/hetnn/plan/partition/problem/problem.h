// The abstract planning problem: a graph with labels, times and sizes, devices and links. A network is one way to
// make one.
//
// Three folders, each reading only those before it: problem/ states, reads, makes and checks; strategies/ plan;
// explain/ answers questions about plans. Their words:
//   problem      What is to be planned: nodes, devices, links, and wishes.
//   node         What runs on one device as a whole. It has one output, which any number of nodes read.
//   device       What runs nodes. The first is the general processor, the others are accelerators.
//   pin          A wish for the device of one node; hard or soft.
//   exportable   Of a node on a device: its output may leave there. A node that may not is trapped: it and all its
//                readers form a cluster, which shares a subgraph.
//   subgraph     Nodes of one device that run in one visit, each visit paid for by a launch.
//   crossing     A value that moves to another device that reads it, paid for by a transfer.
//   plan         The answer: a device for each node, and subgraphs in an order in which they can run.
//   cost         Node times, launches and transfers, one after the other. The makespan is the end of the schedule in
//                which devices work at the same time.
//   instance     The problem as strategies see it: sorted, nodes named by their positions, impossible devices left out.
//   colour       The device of a node in a plan that is being made. Colours alone say nothing of subgraphs.
//   draft        Colours and the subgraphs drawn of them. A run is what one colour reaches in one go; drawing runs
//                gives the fewest subgraphs. An island is a connected piece of a run.
//   part         A set of nodes that grows, and becomes a subgraph or several.
//   contraction  Two parts, an edge apart, become one. Only where no other path joins them: parts never form a ring.
//   component    In `merge`, the part of one label: the device that a node is classified to, before any policy.
//   cut          Colours of least cost without launches, by a minimum cut: exact for two devices.
//   candidate    A whole plan that `cost` weighs.
//   lower bound  What no plan can cost less than; of subgraphs: the fewest that these colours allow.
//   repair       Planning again without what a backend refused.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace hetnn::plan {

/// The time of a node on a device that does not support it.
inline constexpr double kUnsupported = std::numeric_limits<double>::infinity();

/// Something that runs subgraphs. The first device of a problem is the general processor.
struct ProblemDevice {
  std::string name;
  /// Paid once per subgraph.
  double launch_us = 0;
  /// Whether a subgraph must be connected.
  bool connected = false;
  /// The most bytes of weights that may be placed here; negative: no limit.
  double budget_bytes = -1;
};

/// Moving a value of b bytes takes latency_us + b / bytes_per_us.
struct ProblemLink {
  double bytes_per_us = 1000;
  double latency_us = 0;
};

/// A wish for one node. A hard pin is an error where it is impossible; a soft pin is kept wherever it is possible.
struct ProblemPin {
  int32_t device = -1;
  bool hard = false;
};

/// Nodes may stand in any order. All per-node vectors have one entry a node; [node * devices + device] where they
/// speak of devices. Vectors marked optional may be empty.
struct Problem {
  std::vector<ProblemDevice> devices;
  /// [from * devices + to]; the diagonal is unused.
  std::vector<ProblemLink> links;

  std::vector<std::string> ids;
  /// The inputs of node v are inputs[input_begin[v] .. input_begin[v + 1]): indices of the nodes that produce them.
  std::vector<int64_t> input_begin = {0};
  std::vector<int32_t> inputs;
  /// Microseconds, kUnsupported where the device does not support the node.
  std::vector<double> time_us;
  std::vector<double> output_bytes;
  std::vector<double> macs;
  /// Whether the node does arithmetic.
  std::vector<uint8_t> compute;
  /// Whether the node may be the output of a subgraph of the device. Without meaning for the general processor, which
  /// exports everything.
  std::vector<uint8_t> exportable;
  /// Optional: bytes of constants the node brings to its device.
  std::vector<double> weight_bytes;
  /// Optional.
  std::vector<ProblemPin> pins;
  /// Optional: whether the node suits SIMD, the same arithmetic on many elements; where empty, as `compute` says.
  std::vector<uint8_t> simd;
  /// Optional: the depths that strategy `depth` goes by, in place of those of the graph.
  std::vector<int32_t> depths;
  /// Optional: the kind of each node, which `what_if` groups by.
  std::vector<std::string> ops;
  /// Optional: the time a device would take if it supported the node; kUnsupported where not stated.
  std::vector<double> what_if_time_us;

  int32_t size() const { return static_cast<int32_t>(ids.size()); }
  int32_t device_count() const { return static_cast<int32_t>(devices.size()); }
  double time_of(int32_t node, int32_t device) const {
    return time_us[static_cast<size_t>(node) * devices.size() + static_cast<size_t>(device)];
  }
  double& time_of(int32_t node, int32_t device) {
    return time_us[static_cast<size_t>(node) * devices.size() + static_cast<size_t>(device)];
  }
  bool supported(int32_t node, int32_t device) const { return time_of(node, device) < kUnsupported; }
  bool exportable_from(int32_t node, int32_t device) const {
    return device == 0 || exportable[static_cast<size_t>(node) * devices.size() + static_cast<size_t>(device)] != 0;
  }
  bool suits_simd(int32_t node) const { return (simd.empty() ? compute : simd)[static_cast<size_t>(node)] != 0; }
  double weight_of(int32_t node) const { return weight_bytes.empty() ? 0 : weight_bytes[static_cast<size_t>(node)]; }
  const ProblemLink& link(int32_t from, int32_t to) const {
    return links[static_cast<size_t>(from) * devices.size() + static_cast<size_t>(to)];
  }
  /// Microseconds to move the output of `node` from one device to another.
  double transfer_us(int32_t node, int32_t from, int32_t to) const {
    const ProblemLink& l = link(from, to);
    return l.latency_us + output_bytes[static_cast<size_t>(node)] / l.bytes_per_us;
  }

  /// Appends a node that no device supports yet and returns its index. `inputs` are indices and may name later nodes.
  int32_t add_node(std::string id, const std::vector<int32_t>& node_inputs);
  /// Sets every link to the same figures. Call after the devices are in.
  void set_links(ProblemLink link);
  /// The index of the device of that name; -1 when there is none.
  int32_t device_index(std::string_view name) const;
};

/// Throws InvalidModel naming the node, device or link that makes no sense: a duplicate id, an input out of range, a
/// negative or NaN figure, a cycle (its nodes are named), a node that no device supports, a link of no speed.
void validate(const Problem& problem);

/// What `generate_problem` makes.
struct GenerateOptions {
  int32_t devices = 2;
  double unsupported = 0.3;
  double non_exportable = 0;
  bool launch = true;
  bool shuffle = true;
};

/// A random problem: the same arguments give the same problem on every machine. Kinds: `layered`, `series-parallel`,
/// `random`, `chain`, `fan`, `transformer`. InvalidModel on an unknown kind or a number out of range.
Problem generate_problem(std::string_view kind, int32_t nodes, uint64_t seed, const GenerateOptions& options = {});

/// Reads a problem in the form of docs/partitioning.md. InvalidModel naming the node and field at fault.
Problem parse_problem(std::string_view text);
/// The JSON schema (draft 2020-12) of that form.
std::string problem_schema();
/// Writes it back; parse_problem(problem_json(p)) equals p.
std::string problem_json(const Problem& problem);

}  // namespace hetnn::plan
