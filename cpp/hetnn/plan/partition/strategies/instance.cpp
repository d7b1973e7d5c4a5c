// From a problem to an instance: topological numbering, pruning of devices, pins; and the objective of a draft.
#include "hetnn/plan/partition/strategies/instance.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/problem/prefetch.h"

namespace hetnn::plan {
namespace {

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

Instance make_instance(const Problem& problem, Topology sorted, const Options& options, bool keep_soft_pins,
                       std::vector<PartitionNote>& notes) {
  Instance instance;
  instance.problem = &problem;
  instance.size = problem.size();
  instance.device_count = problem.device_count();
  const size_t n = static_cast<size_t>(instance.size);
  const size_t devices = static_cast<size_t>(instance.device_count);

  HETNN_ASSERT(sorted.node_of.size() == n, "the order is not of this problem");
  static_cast<Topology&>(instance) = std::move(sorted);

  instance.time_us.resize(n * devices);
  instance.output_bytes.resize(n);
  // Nodes stand anywhere in the problem, so what is needed soon is fetched early.
  constexpr size_t kAhead = 16;
  const bool all_exportable =
      std::all_of(problem.exportable.begin(), problem.exportable.end(), [](uint8_t e) { return e != 0; });
  for (size_t v = 0; v < n; ++v) {
    const auto soon = static_cast<size_t>(later(instance.node_of, v, kAhead));
    prefetch(&problem.output_bytes[soon]);
    prefetch(&problem.time_us[soon * devices]);
    const auto node = static_cast<size_t>(instance.node_of[v]);
    instance.output_bytes[v] = problem.output_bytes[node];
    for (size_t d = 0; d < devices; ++d) instance.time_us[v * devices + d] = problem.time_us[node * devices + d];
    for (size_t d = 1; d < devices && !all_exportable; ++d) {
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
