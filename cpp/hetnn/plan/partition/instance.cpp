// From a problem to an instance: topological numbering, pruning of devices, pins; and the objective of a draft.
#include "hetnn/plan/partition/instance.h"

#include <algorithm>

#include "hetnn/base/error.h"

namespace hetnn::plan {
namespace {

/// Both directions of the edges by problem index, duplicates removed, inputs ascending.
struct Edges {
  std::vector<int32_t> in_begin, in_nodes, out_begin, out_nodes;
};

Edges unique_edges(const Problem& problem, const std::vector<int32_t>& position) {
  const size_t n = static_cast<size_t>(problem.size());
  Edges e;
  e.in_begin.assign(n + 1, 0);
  e.in_nodes.reserve(problem.inputs.size());
  std::vector<int32_t> node_of(n);
  for (size_t k = 0; k < n; ++k) node_of[static_cast<size_t>(position[k])] = static_cast<int32_t>(k);
  e.out_begin.assign(n + 1, 0);
  for (size_t v = 0; v < n; ++v) {
    const size_t begin = e.in_nodes.size();
    const size_t k = static_cast<size_t>(node_of[v]);
    for (int64_t i = problem.input_begin[k]; i < problem.input_begin[k + 1]; ++i)
      e.in_nodes.push_back(position[static_cast<size_t>(problem.inputs[static_cast<size_t>(i)])]);
    const auto first = e.in_nodes.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(first, e.in_nodes.end());
    e.in_nodes.erase(std::unique(first, e.in_nodes.end()), e.in_nodes.end());
    for (size_t i = begin; i < e.in_nodes.size(); ++i) ++e.out_begin[static_cast<size_t>(e.in_nodes[i]) + 1];
    e.in_begin[v + 1] = static_cast<int32_t>(e.in_nodes.size());
  }
  for (size_t v = 0; v < n; ++v) e.out_begin[v + 1] += e.out_begin[v];
  e.out_nodes.resize(e.in_nodes.size());
  std::vector<int32_t> fill(e.out_begin.begin(), e.out_begin.end() - 1);
  for (size_t v = 0; v < n; ++v) {
    for (int32_t i = e.in_begin[v]; i < e.in_begin[v + 1]; ++i) {
      const auto producer = static_cast<size_t>(e.in_nodes[static_cast<size_t>(i)]);
      e.out_nodes[static_cast<size_t>(fill[producer]++)] = static_cast<int32_t>(v);
    }
  }
  return e;
}

/// Removes devices that a node could never use, until nothing changes. A trapped node needs consumers, all of which
/// may run with it; a node with one trapped device left forces its consumers there. False when a node has none left.
class Pruner {
 public:
  explicit Pruner(Instance& instance) : instance_(instance) {}

  /// The position of a node without a device, or -1.
  int32_t run() {
    if (instance_.trapped.empty()) return empty_node();
    for (bool changed = true; changed;) {
      prune_unexportable();
      if (const int32_t v = empty_node(); v >= 0) return v;
      changed = force_consumers();
    }
    return empty_node();
  }

 private:
  double& time(int32_t v, int32_t d) {
    return instance_
        .time_us[static_cast<size_t>(v) * static_cast<size_t>(instance_.device_count) + static_cast<size_t>(d)];
  }

  void prune_unexportable() {
    for (int32_t v = instance_.size - 1; v >= 0; --v) {
      for (int32_t d = 1; d < instance_.device_count; ++d) {
        if (!instance_.is_trapped(v, d) || !instance_.allowed(v, d)) continue;
        const auto consumers = instance_.consumers(v);
        const bool possible = !consumers.empty() && std::all_of(consumers.begin(), consumers.end(),
                                                                [&](int32_t c) { return instance_.allowed(c, d); });
        if (possible) continue;
        time(v, d) = kUnsupported;
        instance_
            .walled_in[static_cast<size_t>(v) * static_cast<size_t>(instance_.device_count) + static_cast<size_t>(d)] =
            1;
      }
    }
  }

  bool force_consumers() {
    bool changed = false;
    for (int32_t v = 0; v < instance_.size; ++v) {
      int32_t only = -1;
      int32_t count = 0;
      for (int32_t d = 0; d < instance_.device_count; ++d) {
        if (instance_.allowed(v, d)) only = d, ++count;
      }
      if (count != 1 || !instance_.is_trapped(v, only)) continue;
      for (const int32_t c : instance_.consumers(v)) {
        for (int32_t d = 0; d < instance_.device_count; ++d) {
          if (d == only || !instance_.allowed(c, d)) continue;
          time(c, d) = kUnsupported;
          changed = true;
        }
      }
    }
    return changed;
  }

  int32_t empty_node() const {
    for (int32_t v = 0; v < instance_.size; ++v) {
      bool any = false;
      for (int32_t d = 0; d < instance_.device_count && !any; ++d) any = instance_.allowed(v, d);
      if (!any) return v;
    }
    return -1;
  }

  Instance& instance_;
};

void restrict_to(Instance& instance, int32_t v, int32_t device) {
  for (int32_t d = 0; d < instance.device_count; ++d) {
    if (d != device) {
      instance.time_us[static_cast<size_t>(v) * static_cast<size_t>(instance.device_count) + static_cast<size_t>(d)] =
          kUnsupported;
    }
  }
}

std::string supported_devices(const Problem& problem, int32_t node) {
  std::string names;
  for (int32_t d = 0; d < problem.device_count(); ++d) {
    if (problem.supported(node, d)) names += (names.empty() ? "" : ", ") + problem.devices[static_cast<size_t>(d)].name;
  }
  return names.empty() ? "no device" : names;
}

[[noreturn]] void throw_no_device(const Instance& instance, int32_t v) {
  const Problem& p = *instance.problem;
  const int32_t node = instance.node_of[static_cast<size_t>(v)];
  throw Unsupported(text("node '", instance.id(v), "': no device can run it in any plan; it is supported by ",
                         supported_devices(p, node),
                         ", but its result may not leave there and its consumers cannot all run with it (or it has "
                         "none). Make it exportable, or let the general processor '",
                         p.devices.front().name, "' support it."));
}

void apply_hard_pins(Instance& instance) {
  const Problem& p = *instance.problem;
  if (p.pins.empty()) return;
  for (int32_t v = 0; v < instance.size; ++v) {
    const int32_t node = instance.node_of[static_cast<size_t>(v)];
    const ProblemPin& pin = p.pins[static_cast<size_t>(node)];
    if (pin.device < 0 || !pin.hard) continue;
    if (!p.supported(node, pin.device)) {
      throw Unsupported(text("node '", instance.id(v), "': pinned to '",
                             p.devices[static_cast<size_t>(pin.device)].name, "', which does not support it; ",
                             supported_devices(p, node), " would. Make the pin soft or name another device."));
    }
    restrict_to(instance, v, pin.device);
  }
}

/// Keeps every soft pin that leaves each node a device; together when possible, else one after the other.
void apply_soft_pins(Instance& instance, std::vector<PartitionNote>& notes) {
  const Problem& p = *instance.problem;
  if (p.pins.empty()) return;
  std::vector<int32_t> wished;
  for (int32_t v = 0; v < instance.size; ++v) {
    const int32_t node = instance.node_of[static_cast<size_t>(v)];
    const ProblemPin& pin = p.pins[static_cast<size_t>(node)];
    if (pin.device < 0 || pin.hard) continue;
    const std::string& name = p.devices[static_cast<size_t>(pin.device)].name;
    if (instance.allowed(v, pin.device)) {
      wished.push_back(v);
    } else if (p.supported(node, pin.device)) {
      notes.push_back({node, text("soft pin to '", name, "' not kept: its result could not leave '", name, "'")});
    } else {
      notes.push_back({node, text("soft pin to '", name, "' not kept: '", name, "' does not support it")});
    }
  }
  const auto try_pins = [&](std::span<const int32_t> nodes) {
    std::vector<double> before = instance.time_us;
    for (const int32_t v : nodes) {
      restrict_to(instance, v, p.pins[static_cast<size_t>(instance.node_of[static_cast<size_t>(v)])].device);
    }
    if (Pruner(instance).run() < 0) return true;
    instance.time_us = std::move(before);
    return false;
  };
  if (wished.empty() || try_pins(wished)) return;
  constexpr size_t kMostSinglePins = 256;  // each try costs a pass over the graph
  for (size_t k = 0; k < wished.size(); ++k) {
    const int32_t node = instance.node_of[static_cast<size_t>(wished[k])];
    const int32_t device = p.pins[static_cast<size_t>(node)].device;
    if (k < kMostSinglePins && instance.allowed(wished[k], device) && try_pins(std::span(&wished[k], 1))) continue;
    notes.push_back({node, text("soft pin to '", p.devices[static_cast<size_t>(device)].name,
                                "' not kept: with the other pins it would leave a node without a device")});
  }
}

void apply_strict(Instance& instance, const Options& options) {
  if (options.strict.empty()) return;
  const Problem& p = *instance.problem;
  const int32_t device = p.device_index(options.strict);
  if (device < 0) {
    std::string names;
    for (const ProblemDevice& d : p.devices) names += (names.empty() ? "" : ", ") + d.name;
    throw InvalidModel(text("strict: there is no device '", options.strict, "'; the problem has ", names, "."));
  }
  std::string offenders;
  int32_t count = 0;
  for (int32_t v = 0; v < instance.size; ++v) {
    if (instance.allowed(v, device)) continue;
    const int32_t node = instance.node_of[static_cast<size_t>(v)];
    std::string why = text("'", options.strict, "' does not support it");
    if (p.supported(node, device)) {
      const bool pinned = !p.pins.empty() && p.pins[static_cast<size_t>(node)].hard;
      why = pinned ? text("it is pinned to '",
                          p.devices[static_cast<size_t>(p.pins[static_cast<size_t>(node)].device)].name, "'")
                   : text("its result may not leave '", options.strict, "'");
    }
    offenders += text("\n  '", instance.id(v), "': ", why);
    ++count;
  }
  if (count > 0) {
    throw Unsupported(
        text("strict: ", count, " of ", instance.size, " nodes cannot run on '", options.strict, "':", offenders));
  }
  for (int32_t v = 0; v < instance.size; ++v) restrict_to(instance, v, device);
}

}  // namespace

std::vector<int32_t> topological_order(const Problem& problem, std::vector<int32_t>& cycle) {
  const size_t n = static_cast<size_t>(problem.size());
  std::vector<int32_t> order;
  order.reserve(n);
  bool sorted = true;
  for (size_t v = 0; v < n && sorted; ++v) {
    for (int64_t i = problem.input_begin[v]; i < problem.input_begin[v + 1]; ++i)
      sorted = sorted && problem.inputs[static_cast<size_t>(i)] < static_cast<int32_t>(v);
  }
  if (sorted) {
    for (size_t v = 0; v < n; ++v) order.push_back(static_cast<int32_t>(v));
    return order;
  }
  std::vector<int32_t> begin(n + 1, 0);
  for (const int32_t producer : problem.inputs) ++begin[static_cast<size_t>(producer) + 1];
  for (size_t v = 0; v < n; ++v) begin[v + 1] += begin[v];
  std::vector<int32_t> consumers(problem.inputs.size());
  std::vector<int32_t> fill(begin.begin(), begin.end() - 1);
  std::vector<int32_t> missing(n);
  for (size_t v = 0; v < n; ++v) {
    missing[v] = static_cast<int32_t>(problem.input_begin[v + 1] - problem.input_begin[v]);
    for (int64_t i = problem.input_begin[v]; i < problem.input_begin[v + 1]; ++i) {
      const auto producer = static_cast<size_t>(problem.inputs[static_cast<size_t>(i)]);
      consumers[static_cast<size_t>(fill[producer]++)] = static_cast<int32_t>(v);
    }
    if (missing[v] == 0) order.push_back(static_cast<int32_t>(v));
  }
  for (size_t head = 0; head < order.size(); ++head) {
    const auto v = static_cast<size_t>(order[head]);
    for (int32_t i = begin[v]; i < begin[v + 1]; ++i) {
      const int32_t consumer = consumers[static_cast<size_t>(i)];
      if (--missing[static_cast<size_t>(consumer)] == 0) order.push_back(consumer);
    }
  }
  cycle.clear();
  if (order.size() == n) return order;
  // Every node left has an input that is left, so walking back must meet itself.
  int32_t at = 0;
  while (missing[static_cast<size_t>(at)] == 0) ++at;
  std::vector<int32_t> seen_at(n, -1);
  std::vector<int32_t> walk;
  while (seen_at[static_cast<size_t>(at)] < 0) {
    seen_at[static_cast<size_t>(at)] = static_cast<int32_t>(walk.size());
    walk.push_back(at);
    const auto v = static_cast<size_t>(at);
    for (int64_t i = problem.input_begin[v]; i < problem.input_begin[v + 1]; ++i) {
      const int32_t producer = problem.inputs[static_cast<size_t>(i)];
      if (missing[static_cast<size_t>(producer)] > 0) {
        at = producer;
        break;
      }
    }
  }
  cycle.assign(walk.begin() + seen_at[static_cast<size_t>(at)], walk.end());
  std::reverse(cycle.begin(), cycle.end());
  return order;
}

Instance make_instance(const Problem& problem, std::vector<int32_t> order, const Options& options, bool keep_soft_pins,
                       std::vector<PartitionNote>& notes) {
  Instance instance;
  instance.problem = &problem;
  instance.size = problem.size();
  instance.device_count = problem.device_count();
  const size_t n = static_cast<size_t>(instance.size);
  const size_t devices = static_cast<size_t>(instance.device_count);

  HETNN_ASSERT(order.size() == n, "the order is not of this problem");
  instance.node_of = std::move(order);
  std::vector<int32_t> position(n);
  for (size_t v = 0; v < n; ++v) position[static_cast<size_t>(instance.node_of[v])] = static_cast<int32_t>(v);
  Edges edges = unique_edges(problem, position);
  instance.in_begin = std::move(edges.in_begin);
  instance.in_nodes = std::move(edges.in_nodes);
  instance.out_begin = std::move(edges.out_begin);
  instance.out_nodes = std::move(edges.out_nodes);

  instance.time_us.resize(n * devices);
  instance.output_bytes.resize(n);
  for (size_t v = 0; v < n; ++v) {
    const auto node = static_cast<size_t>(instance.node_of[v]);
    instance.output_bytes[v] = problem.output_bytes[node];
    for (size_t d = 0; d < devices; ++d) instance.time_us[v * devices + d] = problem.time_us[node * devices + d];
    for (size_t d = 1; d < devices; ++d) {
      if (problem.exportable[node * devices + d] != 0 || !(problem.time_us[node * devices + d] < kUnsupported))
        continue;
      if (instance.trapped.empty()) {
        instance.trapped.assign(n * devices, 0);
        instance.walled_in.assign(n * devices, 0);
      }
      instance.trapped[v * devices + d] = 1;
    }
  }
  for (const ProblemDevice& device : problem.devices) {
    instance.launch_us.push_back(device.launch_us);
    instance.any_connected = instance.any_connected || device.connected;
    instance.any_budget = instance.any_budget || device.budget_bytes >= 0;
  }
  for (const ProblemLink& link : problem.links) {
    instance.latency_us.push_back(link.latency_us);
    instance.us_per_byte.push_back(1 / link.bytes_per_us);
  }

  apply_hard_pins(instance);
  if (const int32_t v = Pruner(instance).run(); v >= 0) throw_no_device(instance, v);
  apply_strict(instance, options);
  if (keep_soft_pins) apply_soft_pins(instance, notes);
  for (int32_t v = 0; v < instance.size; ++v) instance.general_runs_all &= instance.allowed(v, 0);
  return instance;
}

double colours_cost_us(const Instance& instance, const std::vector<int32_t>& colour) {
  double total = 0;
  std::vector<int32_t> stamp(static_cast<size_t>(instance.device_count), -1);
  for (int32_t v = 0; v < instance.size; ++v) {
    const int32_t mine = colour[static_cast<size_t>(v)];
    total += instance.time(v, mine);
    for (const int32_t c : instance.consumers(v)) {
      const int32_t other = colour[static_cast<size_t>(c)];
      if (other == mine || stamp[static_cast<size_t>(other)] == v) continue;
      stamp[static_cast<size_t>(other)] = v;
      total += instance.transfer(v, mine, other);
    }
  }
  return total;
}

double draft_cost_us(const Instance& instance, const Draft& draft) {
  double total = colours_cost_us(instance, draft.colour);
  std::vector<int32_t> device(static_cast<size_t>(draft.subgraph_count), 0);
  for (size_t v = 0; v < draft.colour.size(); ++v) device[static_cast<size_t>(draft.subgraph_of[v])] = draft.colour[v];
  for (const int32_t d : device) total += instance.launch_us[static_cast<size_t>(d)];
  return total;
}

}  // namespace hetnn::plan
