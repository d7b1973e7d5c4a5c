// The entry to planning: instance, strategy, plan, check.
#include "hetnn/plan/partition/strategies/partition.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/strategies/instance.h"
#include "hetnn/plan/partition/strategies/strategies.h"

namespace hetnn::plan {
namespace {

struct StrategyName {
  Strategy strategy;
  std::string_view name;
};
constexpr std::array<StrategyName, 6> kStrategies = {{{Strategy::topological, "topological"},
                                                      {Strategy::depth, "depth"},
                                                      {Strategy::merge, "merge"},
                                                      {Strategy::cost, "cost"},
                                                      {Strategy::take_all, "take-all"},
                                                      {Strategy::cpu_only, "cpu-only"}}};

Draft run_strategy(const Instance& instance, const Options& options, CostTrace& trace) {
  switch (options.strategy) {
    case Strategy::topological:
      return plan_topological(instance, options.order);
    case Strategy::take_all:
      return draft_from_colours(instance, take_all_colours(instance));
    case Strategy::cpu_only:
      return draft_from_colours(instance, cpu_only_colours(instance));
    case Strategy::depth:
      return plan_depth(instance);
    case Strategy::merge:
      return plan_merge(instance, {.criterion = options.criterion,
                                   .rings = options.rings,
                                   .settle = options.settle,
                                   .policy = options.policy,
                                   .measure = options.measure,
                                   .threshold = options.threshold});
    default:
      break;
  }
  Draft draft = plan_cost(instance, options.local_search, trace);
  return options.overlap ? plan_overlapped(instance, std::move(draft)) : draft;
}

PartitionResult plan_once(const Problem& problem, Topology sorted, const Options& options, bool keep_soft_pins) {
  std::vector<PartitionNote> notes;
  CostTrace trace;
  const Instance instance = make_instance(problem, std::move(sorted), options, keep_soft_pins, notes);
  const Draft draft = run_strategy(instance, options, trace);
  PartitionResult result = finish_plan(instance, draft);
  result.cut_us = trace.cut_us;
  result.lower_bound_us = trace.lower_bound_us;
  result.candidates = std::move(trace.candidates);
  result.notes = std::move(notes);
  return result;
}

/// Soft pins give way where no plan could be found with them.
PartitionResult plan_with_pins(const Problem& problem, Topology sorted, const Options& options) {
  const bool soft = std::any_of(problem.pins.begin(), problem.pins.end(),
                                [](const ProblemPin& pin) { return pin.device >= 0 && !pin.hard; });
  if (!soft) return plan_once(problem, std::move(sorted), options, true);
  std::string reason;
  try {
    return plan_once(problem, sorted, options, true);
  } catch (const Unsupported& error) {
    reason = error.what();
  } catch (const DoesNotFit& error) {
    reason = error.what();
  }
  PartitionResult result = plan_once(problem, std::move(sorted), options, false);
  result.notes.push_back({-1, "soft pins not kept: with them there is no plan: " + reason});
  return result;
}

}  // namespace

PartitionResult partition(const Problem& problem, const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  PartitionResult result = plan_with_pins(problem, validated_topology(problem), options);
  check_partition(problem, result);
  result.plan_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

std::string_view strategy_name(Strategy strategy) {
  for (const StrategyName& s : kStrategies) {
    if (s.strategy == strategy) return s.name;
  }
  HETNN_ASSERT(false, "strategy without a name");
}

Strategy strategy_from_name(std::string_view name) {
  std::string names;
  for (const StrategyName& s : kStrategies) {
    if (s.name == name) return s.strategy;
    names += std::string(names.empty() ? "" : ", ") + std::string(s.name);
  }
  throw InvalidModel(text("strategy: there is no '", name, "'; there are ", names, "."));
}

}  // namespace hetnn::plan
