// Why a node is where it is, what the plan costs, and what more support would gain.
#include "hetnn/plan/partition/explain/explain.h"

#include <algorithm>
#include <map>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/strategies/budget.h"
#include "hetnn/plan/partition/strategies/instance.h"
#include "hetnn/plan/partition/strategies/runs.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// The cost of a plan's colours with one node moved, subgraphs drawn anew; kUnsupported when that cannot be.
double cost_with_move(const Instance& instance, std::vector<int32_t> colour, int32_t v, int32_t device) {
  if (!instance.allowed(v, device)) return kUnsupported;
  colour[index(v)] = device;
  if (!budgets_kept(instance, colour)) return kUnsupported;
  try {
    const Clusters clusters = settle_exports(instance, colour);
    if (colour[index(v)] != device) return kUnsupported;
    return draft_cost_us(instance, draw_runs(instance, clusters, std::move(colour), RunGoal::cheapest));
  } catch (const Unsupported&) {
    return kUnsupported;
  }
}

std::string quoted(const Problem& problem, int32_t device) { return "'" + problem.devices[index(device)].name + "'"; }

/// Everything that speaks against a device for a node. `load_bytes` are the weights on each device.
void add_reasons(const Problem& problem, const Instance& instance, const PartitionResult& result,
                 const std::vector<double>& load_bytes, int32_t v, int32_t device, bool price_moves, Why& why) {
  const int32_t node = why.node;
  const size_t before = why.reasons.size();
  const auto add = [&](const char* label, std::string found, std::string wanted, std::string sentence) {
    why.reasons.push_back({device, label, std::move(found), std::move(wanted), std::move(sentence)});
  };
  if (!problem.supported(node, device)) {
    add("support", "no time_us", "a time", quoted(problem, device) + " does not support it");
  }
  if (!problem.pins.empty()) {
    const ProblemPin& pin = problem.pins[index(node)];
    if (pin.device >= 0 && pin.device != device && (pin.hard || pin.device == why.device)) {
      add("pin", problem.devices[index(pin.device)].name, problem.devices[index(device)].name,
          "it is pinned to " + quoted(problem, pin.device) + (pin.hard ? " (hard)" : " (soft)"));
    }
  }
  if (!problem.exportable_from(node, device)) {
    std::string apart;
    for (const int32_t c : instance.consumers(v)) {
      const int32_t consumer = instance.node_of[index(c)];
      if (result.device_of[index(consumer)] == device) continue;
      apart = "'" + problem.ids[index(consumer)] + "' on " + quoted(problem, result.device_of[index(consumer)]);
      break;
    }
    if (instance.consumers(v).empty() || !apart.empty()) {
      add("exportable", apart.empty() ? "it is an output of the graph" : "read by " + apart,
          "all consumers in its subgraph", "its result may not leave " + quoted(problem, device));
    }
  }
  const double budget = problem.devices[index(device)].budget_bytes;
  const double load = load_bytes[index(device)] + problem.weight_of(node);
  if (budget >= 0 && load > budget) {
    add("budget_bytes", text(load), text("at most ", budget),
        "its weights do not fit the budget of " + quoted(problem, device));
  }
  const double cost = why.plan_cost_us[index(device)];
  if (cost < kUnsupported && cost >= result.cost_us) {
    add("cost", text(cost, " us"), text("below ", result.cost_us, " us"),
        text("moving it to ", quoted(problem, device), " alone would make the plan ", cost - result.cost_us,
             " us slower"));
  }
  if (why.reasons.size() > before) return;
  const double here_us = problem.time_of(node, why.device), there_us = problem.time_of(node, device);
  if (cost < result.cost_us) {
    add("strategy", text(cost, " us"), text(result.cost_us, " us or more"),
        text("the strategy left it here, though moving it to ", quoted(problem, device), " alone would make the plan ",
             result.cost_us - cost, " us faster"));
  } else if (!price_moves) {
    add("cost", text(there_us, " us"), text(here_us, " us here"),
        text(quoted(problem, device), " could run it, but the strategy placed it and its neighbours this way"));
  } else {
    add("plan", quoted(problem, device), quoted(problem, why.device),
        text("there is no plan with it alone on ", quoted(problem, device)));
  }
}

/// The time assumed for a node on a device that does not support it.
class TimeEstimate {
 public:
  TimeEstimate(const Problem& problem, int32_t device) : problem_(problem), device_(device) {
    double sum = 0;
    int64_t count = 0;
    for (int32_t v = 0; v < problem.size(); ++v) {
      if (!problem.supported(v, 0) || !problem.supported(v, device) || problem.time_of(v, 0) <= 0) continue;
      sum += problem.time_of(v, device) / problem.time_of(v, 0);
      ++count;
    }
    if (count > 0) ratio_ = sum / static_cast<double>(count);
  }

  double operator()(int32_t v) const {
    if (!problem_.what_if_time_us.empty()) {
      const double stated = problem_.what_if_time_us[index(v) * problem_.devices.size() + index(device_)];
      if (stated < kUnsupported) return stated;
    }
    if (problem_.supported(v, 0)) return problem_.time_of(v, 0) * ratio_;
    double slowest = 0;
    for (int32_t d = 0; d < problem_.device_count(); ++d) {
      if (problem_.supported(v, d)) slowest = std::max(slowest, problem_.time_of(v, d));
    }
    return slowest;
  }

 private:
  const Problem& problem_;
  int32_t device_;
  double ratio_ = 1;
};

}  // namespace

struct Explainer::State {
  const Problem& problem;
  const PartitionResult& result;
  Instance instance;
  std::vector<int32_t> colour, position;
  std::vector<double> load_bytes;

  State(const Problem& p, const PartitionResult& r) : problem(p), result(r), load_bytes(p.devices.size(), 0) {
    std::vector<PartitionNote> notes;
    instance = make_instance(problem, validated_topology(problem), {}, false, notes);
    colour.resize(index(instance.size));
    position.resize(index(instance.size));
    for (int32_t v = 0; v < instance.size; ++v) {
      const int32_t node = instance.node_of[index(v)];
      colour[index(v)] = result.device_of[index(node)];
      position[index(node)] = v;
      load_bytes[index(colour[index(v)])] += problem.weight_of(node);
    }
  }
};

Explainer::Explainer(const Problem& problem, const PartitionResult& result)
    : state_(std::make_unique<State>(problem, result)) {}
Explainer::~Explainer() = default;

Why Explainer::explain(int32_t node, bool price_moves) const {
  const Problem& problem = state_->problem;
  const PartitionResult& result = state_->result;
  Why why;
  why.node = node;
  why.device = result.device_of[index(node)];
  why.subgraph = result.subgraph_of[index(node)];
  const int32_t v = state_->position[index(node)];
  for (int32_t d = 0; d < problem.device_count(); ++d) {
    why.time_us.push_back(problem.time_of(node, d));
    double cost = kUnsupported;
    if (d == why.device) {
      cost = result.cost_us;
    } else if (price_moves) {
      cost = cost_with_move(state_->instance, state_->colour, v, d);
    }
    why.plan_cost_us.push_back(cost);
  }
  int32_t fastest = why.device;
  for (int32_t d = 0; d < problem.device_count(); ++d) {
    if (d == why.device) continue;
    add_reasons(problem, state_->instance, result, state_->load_bytes, v, d, price_moves, why);
    if (problem.time_of(node, d) < problem.time_of(node, fastest)) fastest = d;
  }
  if (fastest != why.device) {
    const double cost = why.plan_cost_us[index(fastest)];
    if (cost >= kUnsupported) {
      why.change = text("It can move to ", quoted(problem, fastest),
                        " once its pin, its budget or the ban on exporting its result allows that.");
    } else if (cost > result.cost_us) {
      why.change = text("It moves to ", quoted(problem, fastest), " once that plan becomes ", cost - result.cost_us,
                        " us faster: by cheaper transfers, fewer launches or with its neighbours.");
    } else {
      why.change = text("Strategy cost, or a pin, would move it to ", quoted(problem, fastest), ".");
    }
  } else {
    for (int32_t d = 1; d < problem.device_count() && why.change.empty(); ++d) {
      if (!problem.supported(node, d))
        why.change = text("It could move to ", quoted(problem, d), " if that supported it.");
    }
  }
  return why;
}

Why explain_node(const Problem& problem, const PartitionResult& result, int32_t node) {
  return Explainer(problem, result).explain(node, true);
}

Account account_of(const Problem& problem, const PartitionResult& result) {
  // Plans of one cost may differ in the order of their sums.
  constexpr double kRelativeSlack = 1e-9;
  Account account;
  if (result.cut_us >= 0) account.cut_us = result.cut_us;
  if (result.lower_bound_us >= 0) account.lower_bound_us = result.lower_bound_us;
  if (result.lower_bound_us > 0) account.gap = std::max(0.0, result.cost_us / result.lower_bound_us - 1);
  account.candidates = result.candidates;
  std::stable_sort(account.candidates.begin(), account.candidates.end(),
                   [](const PartitionCandidate& a, const PartitionCandidate& b) { return a.cost_us < b.cost_us; });
  const auto dearer =
      std::find_if(account.candidates.begin(), account.candidates.end(),
                   [&](const PartitionCandidate& c) { return c.cost_us > result.cost_us * (1 + kRelativeSlack); });
  if (dearer != account.candidates.end()) account.margin_us = dearer->cost_us - result.cost_us;
  for (const PartitionSubgraph& s : result.subgraphs) {
    const double launch = problem.devices[index(s.device)].launch_us;
    account.launch_us += launch;
    account.node_us += s.predicted_us - launch;
  }
  for (const PartitionCrossing& c : result.crossings) account.transfer_us += c.transfer_us;
  return account;
}

std::vector<WhatIf> what_if(const Problem& problem, const Options& options, const PartitionResult& result,
                            const std::vector<std::string>& kinds) {
  std::vector<WhatIf> answers;
  Problem changed = problem;
  Options free = options;
  free.strict.clear();
  for (int32_t d = 1; d < problem.device_count(); ++d) {
    const TimeEstimate estimate(problem, d);
    std::map<std::string, std::vector<int32_t>> lacking;
    for (int32_t v = 0; v < problem.size(); ++v) {
      if (problem.supported(v, d)) continue;
      const bool named = !problem.ops.empty() && !problem.ops[index(v)].empty();
      const std::string& kind = named ? problem.ops[index(v)] : problem.ids[index(v)];
      if (kinds.empty() || std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) lacking[kind].push_back(v);
    }
    for (const auto& [kind, nodes] : lacking) {
      for (const int32_t v : nodes) changed.time_of(v, d) = estimate(v);
      WhatIf answer{d, kind, nodes, partition(changed, free).cost_us, 0};
      answer.gain_us = result.cost_us - answer.cost_us;
      answers.push_back(std::move(answer));
      for (const int32_t v : nodes) changed.time_of(v, d) = kUnsupported;
    }
  }
  std::stable_sort(answers.begin(), answers.end(),
                   [](const WhatIf& a, const WhatIf& b) { return a.gain_us > b.gain_us; });
  return answers;
}

}  // namespace hetnn::plan
