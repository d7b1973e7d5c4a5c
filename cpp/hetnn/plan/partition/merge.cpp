// The `merge` strategy: classify, merge neighbours of one label, settle what may not be exported, assign by a policy.
#include <algorithm>
#include <numeric>

#include "hetnn/plan/partition/contraction.h"
#include "hetnn/plan/partition/group.h"
#include "hetnn/plan/partition/parts.h"
#include "hetnn/plan/partition/strategies.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// The fastest accelerator that supports each node, even where its value could not leave there: settling comes later.
std::vector<int32_t> classify(const Instance& instance) {
  std::vector<int32_t> label = take_all_colours(instance);
  if (instance.walled_in.empty()) return label;
  const Problem& p = *instance.problem;
  for (int32_t v = 0; v < instance.size; ++v) {
    for (int32_t d = 1; d < instance.device_count; ++d) {
      if (instance.walled_in[index(v) * index(instance.device_count) + index(d)] == 0 || !instance.allowed(v, 0))
        continue;
      const int32_t best = label[index(v)];
      const int32_t node = instance.node_of[index(v)];
      if (best == 0 || p.time_of(node, d) < p.time_of(node, best)) label[index(v)] = d;
    }
  }
  return label;
}

/// Merges every edge within a label unless another path joins its ends. Heads go in topological order, so whatever
/// could be merged on a second path is merged by then, and a path that is left leaves the label.
void merge_neighbours(const Instance& instance, const std::vector<int32_t>& label, ContractionGraph& groups) {
  std::vector<int32_t> tried;
  for (int32_t v = 0; v < instance.size; ++v) {
    tried.clear();
    for (const int32_t u : instance.inputs(v)) {
      if (label[index(u)] != label[index(v)]) continue;
      const int32_t from = groups.group(u);
      const int32_t to = groups.group(v);
      if (from == to || std::find(tried.begin(), tried.end(), from) != tried.end()) continue;
      if (!groups.try_contract(from, to) && tried.size() < kRefusalsKept) tried.push_back(from);
    }
  }
}

/// Parts that end in a node which may not be exported join the parts that consume it; all of them run on the general
/// processor. The same holds for a part of the general processor whose value may not be exchanged with its reader.
class SettleByMerging {
 public:
  SettleByMerging(const Instance& instance, ContractionGraph& groups, std::vector<int32_t>& colour)
      : instance_(instance), groups_(groups), colour_(colour) {}

  void run() {
    const Problem& p = *instance_.problem;
    if (std::all_of(p.exportable.begin(), p.exportable.end(), [](uint8_t e) { return e != 0; })) return;
    part_of_ = groups_.numbering();
    int32_t parts = 0;
    for (const int32_t k : part_of_) parts = std::max(parts, k + 1);
    members_.resize(static_cast<size_t>(parts));
    for (int32_t v = 0; v < instance_.size; ++v) members_[index(part_of_[index(v)])].push_back(v);
    device_.assign(static_cast<size_t>(parts), 0);
    for (int32_t v = 0; v < instance_.size; ++v) device_[index(part_of_[index(v)])] = colour_[index(v)];
    queued_.assign(static_cast<size_t>(parts), 0);
    for (int32_t part = 0; part < parts; ++part) {
      if (device_[index(part)] != 0 ? ends_badly(part) : exchanges_badly(part)) enqueue(part);
    }
    for (size_t head = 0; head < queue_.size(); ++head) settle(queue_[head]);
    for (const auto& [from, to] : joins_) {
      const int32_t a = groups_.group(from);
      const int32_t b = groups_.group(to);
      if (a != b) groups_.try_contract(a, b);
    }
  }

 private:
  void enqueue(int32_t part) {
    if (queued_[index(part)]++ == 0) queue_.push_back(part);
  }

  bool leaves(int32_t v) const {
    const auto consumers = instance_.consumers(v);
    return consumers.empty() || std::any_of(consumers.begin(), consumers.end(),
                                            [&](int32_t c) { return part_of_[index(c)] != part_of_[index(v)]; });
  }

  /// Whether a value may not pass between the general processor and a device.
  bool barred(int32_t v, int32_t device) const {
    return device != 0 && !instance_.problem->exportable_from(instance_.node_of[index(v)], device);
  }

  bool ends_badly(int32_t part) const {
    const auto& nodes = members_[index(part)];
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](int32_t v) { return instance_.is_trapped(v, device_[index(part)]) && leaves(v); });
  }

  bool exchanges_badly(int32_t part) const {
    const auto& nodes = members_[index(part)];
    return std::any_of(nodes.begin(), nodes.end(), [&](int32_t v) {
      const auto consumers = instance_.consumers(v);
      return std::any_of(consumers.begin(), consumers.end(),
                         [&](int32_t c) { return barred(v, device_[index(part_of_[index(c)])]); });
    });
  }

  /// Moves one part to the general processor and draws in the parts that consume its barred values.
  void settle(int32_t part) {
    const int32_t before = device_[index(part)];
    device_[index(part)] = 0;
    for (const int32_t v : members_[index(part)]) {
      if (before != 0 && instance_.allowed(v, 0)) colour_[index(v)] = 0;
      for (const int32_t c : instance_.consumers(v)) {
        const int32_t reader = part_of_[index(c)];
        if (reader == part) continue;
        const bool draws = (before != 0 && instance_.is_trapped(v, before)) || barred(v, device_[index(reader)]);
        if (!draws) continue;
        joins_.emplace_back(v, c);
        if (device_[index(reader)] != 0) enqueue(reader);
      }
    }
  }

  const Instance& instance_;
  ContractionGraph& groups_;
  std::vector<int32_t>& colour_;
  std::vector<int32_t> part_of_, device_, queue_;
  std::vector<uint8_t> queued_;
  std::vector<std::vector<int32_t>> members_;
  std::vector<std::pair<int32_t, int32_t>> joins_;
};

/// The parts that may run on an accelerator, and what each decision costs.
class Assignment {
 public:
  Assignment(const Instance& instance, std::vector<int32_t> part_of, std::vector<int32_t>& colour)
      : instance_(instance), part_of_(std::move(part_of)), colour_(colour) {
    int32_t parts = 0;
    for (const int32_t k : part_of_) parts = std::max(parts, k + 1);
    members_.resize(static_cast<size_t>(parts));
    device_.assign(static_cast<size_t>(parts), 0);
    for (int32_t v = 0; v < instance_.size; ++v) {
      members_[index(part_of_[index(v)])].push_back(v);
      device_[index(part_of_[index(v)])] = std::max(device_[index(part_of_[index(v)])], colour_[index(v)]);
    }
  }

  std::vector<int32_t> run(const MergeOptions& options) {
    if (options.policy == Policy::all) return std::move(part_of_);
    if (options.policy == Policy::balance) {
      balance();
      return std::move(part_of_);
    }
    const std::vector<double> amount = amounts(options.measure);
    int32_t largest = -1;
    for (int32_t k = 0; k < static_cast<int32_t>(amount.size()); ++k) {
      if (device_[index(k)] != 0 && (largest < 0 || amount[index(k)] > amount[index(largest)])) largest = k;
    }
    for (int32_t k = 0; k < static_cast<int32_t>(amount.size()); ++k) {
      const bool above = amount[index(k)] > options.threshold;
      const bool stays = options.policy == Policy::largest     ? k == largest
                         : options.policy == Policy::threshold ? above
                                                               : k == largest || above;
      if (!stays) send_home(k);
    }
    return std::move(part_of_);
  }

  /// Amount of compute of each part.
  std::vector<double> amounts(Measure measure) const {
    std::vector<double> amount(members_.size(), 0);
    for (int32_t v = 0; v < instance_.size; ++v) {
      if (!instance_.compute(v)) continue;
      double& total = amount[index(part_of_[index(v)])];
      switch (measure) {
        case Measure::nodes:
          total += 1;
          break;
        case Measure::macs:
          total += instance_.macs(v);
          break;
        case Measure::time:
          total += instance_.time(v, instance_.allowed(v, 0) ? 0 : colour_[index(v)]);
          break;
      }
    }
    return amount;
  }

 private:
  void send_home(int32_t part) {
    for (const int32_t v : members_[index(part)]) {
      if (instance_.allowed(v, 0)) colour_[index(v)] = 0;
    }
  }

  /// Everything on the general processor first; then part by part the accelerator, where that lowers the cost so far.
  void balance() {
    std::vector<int32_t> wished = colour_;
    for (int32_t k = 0; k < static_cast<int32_t>(members_.size()); ++k) send_home(k);
    TransferCounts counts(instance_, colour_);
    for (int32_t k = 0; k < static_cast<int32_t>(members_.size()); ++k) {
      if (device_[index(k)] == 0) continue;
      double gain = -instance_.launch_us[index(device_[index(k)])];
      for (const int32_t v : members_[index(k)]) gain += counts.move(v, wished[index(v)]);
      if (gain > 0) continue;
      for (const int32_t v : members_[index(k)]) counts.move(v, instance_.allowed(v, 0) ? 0 : wished[index(v)]);
    }
  }

  const Instance& instance_;
  std::vector<int32_t> part_of_;
  std::vector<int32_t>& colour_;
  std::vector<std::vector<int32_t>> members_;
  std::vector<int32_t> device_;
};

}  // namespace

TransferCounts::TransferCounts(const Instance& instance, std::vector<int32_t>& colour)
    : instance_(instance),
      colour_(colour),
      readers_(static_cast<size_t>(instance.size) * static_cast<size_t>(instance.device_count), 0) {
  for (int32_t v = 0; v < instance.size; ++v) {
    for (const int32_t u : instance.inputs(v)) ++readers(u, colour[index(v)]);
  }
}

double TransferCounts::move(int32_t v, int32_t device) {
  const int32_t from = colour_[index(v)];
  if (from == device) return 0;
  double gain = instance_.time(v, from) - instance_.time(v, device);
  for (const int32_t u : instance_.inputs(v)) {
    const int32_t producer = colour_[index(u)];
    if (--readers(u, from) == 0 && producer != from) gain += instance_.transfer(u, producer, from);
    if (readers(u, device)++ == 0 && producer != device) gain -= instance_.transfer(u, producer, device);
  }
  for (int32_t d = 0; d < instance_.device_count; ++d) {
    if (readers(v, d) == 0) continue;
    if (d != from) gain += instance_.transfer(v, from, d);
    if (d != device) gain -= instance_.transfer(v, device, d);
  }
  colour_[index(v)] = device;
  return gain;
}

std::vector<int32_t> merge_parts(const Instance& instance, const std::vector<int32_t>& label) {
  std::vector<int32_t> order(static_cast<size_t>(instance.size));
  std::iota(order.begin(), order.end(), 0);
  ContractionGraph groups(instance, order);
  merge_neighbours(instance, label, groups);
  return groups.numbering();
}

Draft plan_merge(const Instance& instance, const MergeOptions& options) {
  std::vector<int32_t> colour = classify(instance);
  std::vector<int32_t> order(static_cast<size_t>(instance.size));
  std::iota(order.begin(), order.end(), 0);
  ContractionGraph groups(instance, order);
  merge_neighbours(instance, colour, groups);
  std::vector<int32_t> parts;
  if (options.settle == Settle::merge) {
    SettleByMerging(instance, groups, colour).run();
    parts = groups.numbering();
  } else {
    // What trim takes from a part is decided here, so that the policy measures what is left.
    parts = groups.numbering();
    for (int32_t round = 0; move_trapped(instance, parts, colour, round >= kGentleRounds) > 0; ++round)
      refine_by_colour(instance, colour, parts);
  }
  parts = Assignment(instance, std::move(parts), colour).run(options);
  return draft_from_parts(instance, std::move(parts), std::move(colour));
}

}  // namespace hetnn::plan
