// The driver: applies rules to a graph until none fires, in a fixed order, each firing whole or not at all.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hetnn/passes/rule.h"

namespace hetnn::passes {

struct Firing {
  std::string rule;
  std::string node;  // the root's name before the rewrite
  std::string op;    // the root's operator
  ops::Loc loc;
  double steps_apart = 0;  // Rule::steps_apart
};

struct ApplyOptions {
  /// Says no to a rule at a place; empty: every match may fire.
  std::function<bool(const Rule&, const Match&)> allow;
  /// Judges a right side after it is built and before it replaces the root; `created` are its nodes. Empty: accept.
  std::function<bool(const Rule&, const Match&, const std::vector<ir::Node*>& created)> accept;
  /// Whether a right side may have a constant of so many bytes; empty: any. See Build::affords.
  std::function<bool(int64_t bytes)> affords = {};
  /// Only where results are rounded as before: see Rule::steps_apart.
  bool deterministic = false;
  /// Whether firings count in firing_counts(); a search that only tries rules says no.
  bool count = true;
};

/// Applies `sets`, in sweeps over the nodes in order, at each node the rules in order, until a whole sweep fires
/// nothing. Rules must make progress: more firings than 64 a node is InternalError, naming the last rule. A right side
/// that throws leaves the graph as it was before that rule; the error is thrown again with the rule and the node.
std::vector<Firing> apply_rules(ir::Graph& graph, const std::vector<const RuleSet*>& sets,
                                const ApplyOptions& options = {});

/// One rule at one node. Returns the nodes created (oldest first) when it fired, nullopt when it did not match. What
/// the rule made dead is erased. `steps_apart`, if given, becomes that of the rule where it fired; `next`, where it is
/// a node that is erased, the one behind it.
std::optional<std::vector<ir::Node*>> fire(ir::Graph& graph, ir::Node* root, const Rule& rule,
                                           const ApplyOptions& options = {}, double* steps_apart = nullptr,
                                           ir::Graph::Nodes::iterator* next = nullptr);

/// For ApplyOptions::accept: what was made stands on the device and in the subgraph of the root.
bool stand_with(const ir::Node& root, const std::vector<ir::Node*>& created);

/// How often each rule has fired in this process, by name. Thread-safe.
std::map<std::string, size_t> firing_counts();

}  // namespace hetnn::passes
