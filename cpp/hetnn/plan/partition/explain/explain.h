// Questions about a plan: why a node is where it is, what other plans would cost, what more support would gain, how two
// plans differ.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hetnn/plan/partition/strategies/partition.h"

namespace hetnn::plan {

/// One reason why a node is not on a device, in the form of all reasons: label, what was found, what was wanted.
struct WhyReason {
  int32_t device = 0;
  std::string label;
  std::string found;
  std::string wanted;
  std::string text;
};

/// The place of one node and the alternatives.
struct Why {
  int32_t node = 0;
  int32_t device = 0;
  int32_t subgraph = 0;
  /// Node time per device; kUnsupported where it cannot run.
  std::vector<double> time_us;
  /// Per device: what the whole plan would cost with this node alone moved there and subgraphs drawn anew; kUnsupported
  /// where that is impossible.
  std::vector<double> plan_cost_us;
  /// Every reason against every other device.
  std::vector<WhyReason> reasons;
  /// What would move the node to its fastest other device, in one sentence; empty where it is on the fastest.
  std::string change;
};

Why explain_node(const Problem& problem, const PartitionResult& result, int32_t node);

/// The same for many nodes of one plan, which must outlive it.
class Explainer {
 public:
  Explainer(const Problem& problem, const PartitionResult& result);
  ~Explainer();
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;

  /// Without `price_moves` no plan is drawn anew: plan_cost_us is kUnsupported elsewhere, and where nothing else speaks
  /// against a device the reason compares the node's times.
  Why explain(int32_t node, bool price_moves) const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

/// What a plan's cost is made of, and how near the best it is.
struct Account {
  double node_us = 0, launch_us = 0, transfer_us = 0;
  /// As the plan's own; none where not computed.
  std::optional<double> cut_us, lower_bound_us;
  /// How far the cost is above the lower bound, as a share of that.
  std::optional<double> gap;
  /// How far behind the next dearer candidate is.
  std::optional<double> margin_us;
  /// The cheapest first.
  std::vector<PartitionCandidate> candidates;
};

Account account_of(const Problem& problem, const PartitionResult& result);

/// What it would gain if a device supported one more kind of node.
struct WhatIf {
  int32_t device = 0;
  /// The op, or the id where nodes have no op.
  std::string kind;
  std::vector<int32_t> nodes;
  double cost_us = 0;
  double gain_us = 0;
};

/// Plans again, once for each kind of node that an accelerator does not support (or only the kinds asked for), as if it
/// did; the greatest gain first. The time assumed is the node's what_if_time_us, else its time on the general processor
/// scaled by the mean ratio of both devices over the nodes that both support, else that time itself.
std::vector<WhatIf> what_if(const Problem& problem, const Options& options, const PartitionResult& result,
                            const std::vector<std::string>& kinds = {});

/// The documents of hetnn.planning: each answer as JSON text.
std::string why_json(const Problem& problem, const PartitionResult& result, const std::string& id);
std::string explain_json(const Problem& problem, const PartitionResult& result);
std::string what_if_json(const Problem& problem, const Options& options, const PartitionResult& result,
                         const std::vector<std::string>& kinds);
std::string diff_json(const Problem& problem, const PartitionResult& before, const Problem& other_problem,
                      const PartitionResult& after);

}  // namespace hetnn::plan
