// Building and validating planning problems.
#include "hetnn/plan/partition/problem/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/problem/prefetch.h"
#include "hetnn/plan/partition/problem/topology.h"

namespace hetnn::plan {
namespace {

/// No figure may be larger (in microseconds: thirty years), so that sums stay exact enough to compare.
constexpr double kLargest = 1e15;
constexpr double kSlowest_bytes_per_us = 1e-6;

void require_figure(const Problem& problem, int32_t node, const char* field, double value) {
  if (std::isfinite(value) && value > kLargest) {
    throw InvalidModel(text("node '", problem.ids[static_cast<size_t>(node)], "': ", field, " must be at most ",
                            kLargest, ", got ", value, "."));
  }
  if (std::isfinite(value) && value >= 0) return;
  throw InvalidModel(text("node '", problem.ids[static_cast<size_t>(node)], "': ", field,
                          " must be a finite number of at least 0, got ", value, "."));
}

void validate_devices(const Problem& problem) {
  if (problem.devices.empty()) {
    throw InvalidModel("problem: `devices` is empty; name at least the general processor, which comes first.");
  }
  std::unordered_set<std::string_view> names;
  for (const ProblemDevice& device : problem.devices) {
    if (device.name.empty()) throw InvalidModel("problem: a device has an empty name; name every device.");
    if (!names.insert(device.name).second) {
      throw InvalidModel(text("device '", device.name, "': named twice; device names must differ."));
    }
    if (!(device.launch_us >= 0 && device.launch_us <= kLargest)) {
      throw InvalidModel(
          text("device '", device.name, "': launch_us must be from 0 to 1e15, got ", device.launch_us, "."));
    }
    if (std::isnan(device.budget_bytes)) {
      throw InvalidModel(
          text("device '", device.name, "': budget_bytes must be a number, got ", device.budget_bytes, "."));
    }
  }
  HETNN_ASSERT(problem.links.size() == problem.devices.size() * problem.devices.size(),
               "links: ", problem.links.size());
  for (int32_t from = 0; from < problem.device_count(); ++from) {
    for (int32_t to = 0; to < problem.device_count(); ++to) {
      const ProblemLink& link = problem.link(from, to);
      if (from == to) continue;
      const std::string name = text("link '", problem.devices[static_cast<size_t>(from)].name, "' -> '",
                                    problem.devices[static_cast<size_t>(to)].name, "'");
      if (!(link.bytes_per_us >= kSlowest_bytes_per_us)) {
        throw InvalidModel(text(name, ": bytes_per_us must be above 0 (at least 1e-6), got ", link.bytes_per_us, "."));
      }
      if (!(link.latency_us >= 0 && link.latency_us <= kLargest)) {
        throw InvalidModel(text(name, ": latency_us must be from 0 to 1e15, got ", link.latency_us, "."));
      }
    }
  }
}

/// The second node of those that share an id, or -1.
int32_t repeated_id(const Problem& problem) {
  std::unordered_set<std::string_view> seen;
  for (int32_t v = 0; v < problem.size(); ++v) {
    if (!seen.insert(problem.ids[static_cast<size_t>(v)]).second) return v;
  }
  return -1;
}

/// A flat table of half hashes: as long as those differ the ids do, and a million of them are looked up faster than in
/// a set of strings. Places in the table are asked for some ids ahead.
void require_distinct_ids(const Problem& problem) {
  size_t slots = 16;
  while (slots < problem.ids.size() * 2) slots *= 2;
  std::vector<uint32_t> table(slots, 0);
  constexpr size_t kAhead = 16;
  std::array<size_t, kAhead> hashes{};
  for (size_t next = 0; next < problem.ids.size() + kAhead; ++next) {
    size_t& hash = hashes[next % kAhead];
    if (next >= kAhead) {
      const uint32_t tag = static_cast<uint32_t>(hash >> 32) | 1;  // 0 marks an empty slot
      size_t slot = hash & (slots - 1);
      for (; table[slot] != 0 && table[slot] != tag; slot = (slot + 1) & (slots - 1)) {
      }
      if (table[slot] == tag) {
        const int32_t v = repeated_id(problem);
        if (v < 0) return;
        throw InvalidModel(
            text("node '", problem.ids[static_cast<size_t>(v)], "': this id is used twice; ids must differ."));
      }
      table[slot] = tag;
    }
    if (next < problem.ids.size()) {
      hash = std::hash<std::string_view>{}(problem.ids[next]);
      prefetch(&table[hash & (slots - 1)]);
    }
  }
}

void validate_nodes(const Problem& problem) {
  const size_t n = problem.ids.size();
  const size_t devices = problem.devices.size();
  HETNN_ASSERT(problem.input_begin.size() == n + 1 && problem.time_us.size() == n * devices &&
                   problem.exportable.size() == n * devices && problem.output_bytes.size() == n &&
                   problem.macs.size() == n && problem.compute.size() == n,
               "vectors of a problem with ", n, " nodes differ in length");
  HETNN_ASSERT(
      (problem.weight_bytes.empty() || problem.weight_bytes.size() == n) &&
          (problem.pins.empty() || problem.pins.size() == n) && (problem.simd.empty() || problem.simd.size() == n) &&
          (problem.depths.empty() || problem.depths.size() == n) && (problem.ops.empty() || problem.ops.size() == n) &&
          (problem.what_if_time_us.empty() || problem.what_if_time_us.size() == n * devices),
      "optional vectors of a problem with ", n, " nodes differ in length");
  if (problem.inputs.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw InvalidModel(text("problem: has ", problem.inputs.size(), " edges; there may be up to 2147483646."));
  }
  require_distinct_ids(problem);
  for (int32_t v = 0; v < problem.size(); ++v) {
    const auto k = static_cast<size_t>(v);
    for (int64_t i = problem.input_begin[k]; i < problem.input_begin[k + 1]; ++i) {
      const int32_t u = problem.inputs[static_cast<size_t>(i)];
      if (u < 0 || u >= problem.size()) {
        throw InvalidModel(text("node '", problem.ids[k], "': input ", u, " is not a node; there are ", n, "."));
      }
      if (u == v) throw InvalidModel(text("node '", problem.ids[k], "': reads its own output; remove that input."));
    }
    bool any = false;
    for (int32_t d = 0; d < problem.device_count(); ++d) {
      if (!std::isnan(problem.time_of(v, d)) && problem.time_of(v, d) == kUnsupported) continue;
      require_figure(problem, v, "time_us", problem.time_of(v, d));
      any = true;
    }
    if (!any) {
      throw Unsupported(text("node '", problem.ids[k],
                             "': no device supports it (time_us names none); give it a time on at least one device."));
    }
    require_figure(problem, v, "output_bytes", problem.output_bytes[k]);
    require_figure(problem, v, "macs", problem.macs[k]);
    require_figure(problem, v, "weight_bytes", problem.weight_of(v));
    if (!problem.pins.empty() && problem.pins[k].device >= problem.device_count()) {
      throw InvalidModel(
          text("node '", problem.ids[k], "': pinned to device ", problem.pins[k].device, " of ", devices, "."));
    }
  }
}

}  // namespace

int32_t Problem::add_node(std::string id, const std::vector<int32_t>& node_inputs) {
  const int32_t v = size();
  ids.push_back(std::move(id));
  inputs.insert(inputs.end(), node_inputs.begin(), node_inputs.end());
  input_begin.push_back(static_cast<int64_t>(inputs.size()));
  time_us.resize(time_us.size() + devices.size(), kUnsupported);
  exportable.resize(exportable.size() + devices.size(), 1);
  output_bytes.push_back(0);
  macs.push_back(0);
  compute.push_back(1);
  return v;
}

void Problem::set_links(ProblemLink link) { links.assign(devices.size() * devices.size(), link); }

int32_t Problem::device_index(std::string_view name) const {
  for (size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].name == name) return static_cast<int32_t>(d);
  }
  return -1;
}

void validate(const Problem& problem) { static_cast<void>(validated_topology(problem)); }

Topology validated_topology(const Problem& problem) {
  validate_devices(problem);
  validate_nodes(problem);
  std::vector<int32_t> cycle;
  Topology sorted = sort_graph(problem, cycle);
  if (cycle.empty()) return sorted;
  constexpr size_t kMostNames = 12;
  std::string names;
  for (size_t k = 0; k < cycle.size() && k < kMostNames; ++k) {
    names += "'" + problem.ids[static_cast<size_t>(cycle[k])] + "' -> ";
  }
  if (cycle.size() > kMostNames) names += text("... (", cycle.size() - kMostNames, " more) -> ");
  throw InvalidModel(text("node '", problem.ids[static_cast<size_t>(cycle.front())],
                          "': the graph has a cycle: ", names, "'", problem.ids[static_cast<size_t>(cycle.front())],
                          "'. A planning problem must be acyclic."));
}

}  // namespace hetnn::plan
