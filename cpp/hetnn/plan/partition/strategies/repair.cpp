// Planning against a backend that may refuse a subgraph: split, shed, try again, record.
#include <algorithm>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/strategies/instance.h"
#include "hetnn/plan/partition/strategies/partition.h"
#include "hetnn/plan/partition/strategies/parts.h"
#include "hetnn/plan/partition/strategies/runs.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

class Repair {
 public:
  Repair(const Problem& problem, const Options& options, const Backend& backend)
      : original_(problem), problem_(problem), options_(options), backend_(backend) {}

  PartitionResult run() {
    PartitionResult result = plan_without_nodes_at_fault();
    if (whole_refused_) result = split(std::move(result));
    result.notes.insert(result.notes.end(), notes_.begin(), notes_.end());
    check_partition(original_, result);
    return result;
  }

 private:
  void note(int32_t node, std::string sentence) { notes_.push_back({node, std::move(sentence)}); }
  const std::string& device_name(int32_t d) const { return original_.devices[index(d)].name; }

  /// Whether the backend takes the subgraph; answers are remembered, since later plans share most subgraphs.
  Refusal ask(const PartitionResult& result, int32_t s) {
    const int32_t device = result.subgraphs[index(s)].device;
    if (device == 0) return {};
    const std::span<const int32_t> nodes = result.nodes[index(s)];
    std::pair asked(device, std::vector<int32_t>(nodes.begin(), nodes.end()));
    if (accepted_.contains(asked)) return {};
    Refusal refusal = backend_(result, s);
    if (!refusal.refused) accepted_.insert(std::move(asked));
    return refusal;
  }

  [[noreturn]] void throw_refused(int32_t node, int32_t device, const std::string& reason) const {
    throw DoesNotFit(text("node '", original_.ids[index(node)], "': the backend of '", device_name(device),
                          "' refused it (", reason, ") and no other device can run it."));
  }

  /// Plans until no node is refused by name. Each round takes at least one node from a device, so this ends.
  PartitionResult plan_without_nodes_at_fault() {
    for (;;) {
      PartitionResult result = partition(problem_, options_);
      bool planned_anew = false;
      whole_refused_ = false;
      for (int32_t s = 0; s < static_cast<int32_t>(result.subgraphs.size()); ++s) {
        const Refusal refusal = ask(result, s);
        if (!refusal.refused) continue;
        const int32_t device = result.subgraphs[index(s)].device;
        whole_refused_ = whole_refused_ || refusal.nodes.empty();
        for (const int32_t v : refusal.nodes) {
          if (v < 0 || v >= problem_.size() || !problem_.supported(v, device)) continue;
          problem_.time_of(v, device) = kUnsupported;
          bool elsewhere = false;
          for (int32_t d = 0; d < problem_.device_count(); ++d) elsewhere = elsewhere || problem_.supported(v, d);
          if (!elsewhere) throw_refused(v, device, refusal.reason);
          note(v, text("moved off '", device_name(device), "': its backend refused it: ", refusal.reason));
          planned_anew = true;
        }
      }
      if (!planned_anew) return result;
    }
  }

  /// Halves refused subgraphs along their order until each piece is taken; a refused single node leaves the device.
  PartitionResult split(PartitionResult result) {
    std::vector<PartitionNote> ignored;
    const Instance instance = make_instance(problem_, validated_topology(problem_), options_, false, ignored);
    std::vector<int32_t> position(index(instance.size));
    for (int32_t v = 0; v < instance.size; ++v) position[index(instance.node_of[index(v)])] = v;
    const double lower_bound_us = result.lower_bound_us;
    for (;;) {
      std::vector<int32_t> part_of(index(instance.size)), colour(index(instance.size));
      bool changed = false;
      for (int32_t s = 0; s < static_cast<int32_t>(result.subgraphs.size()); ++s) {
        const int32_t device = result.subgraphs[index(s)].device;
        const std::span<const int32_t> nodes = result.nodes[index(s)];
        const Refusal refusal = ask(result, s);
        const size_t half = refusal.refused ? nodes.size() / 2 : nodes.size();
        for (size_t k = 0; k < nodes.size(); ++k) {
          const int32_t v = position[index(nodes[k])];
          part_of[index(v)] = 2 * s + (k < half ? 0 : 1);
          colour[index(v)] = device;
        }
        if (!refusal.refused) continue;
        changed = true;
        if (nodes.size() > 1) {
          note(nodes[half], text("a subgraph of '", device_name(device), "' was cut before it: the ",
                                 "backend refused the whole: ", refusal.reason));
          continue;
        }
        const int32_t node = nodes.front();
        const int32_t v = position[index(node)];
        const int32_t to = fallback_device(instance, colour, v);
        if (to < 0) throw_refused(node, device, refusal.reason);
        colour[index(v)] = to;
        note(node, text("moved off '", device_name(device), "': its backend refused it: ", refusal.reason));
      }
      if (!changed) break;
      result = finish_plan(instance, draft_from_parts(instance, std::move(part_of), std::move(colour)));
    }
    result.lower_bound_us = lower_bound_us;
    return result;
  }

  const Problem& original_;
  Problem problem_;
  const Options& options_;
  const Backend& backend_;
  bool whole_refused_ = false;
  std::set<std::pair<int32_t, std::vector<int32_t>>> accepted_;
  std::vector<PartitionNote> notes_;
};

}  // namespace

PartitionResult partition_with_repair(const Problem& problem, const Options& options, const Backend& backend) {
  return Repair(problem, options, backend).run();
}

}  // namespace hetnn::plan
