// Plans and their options as JSON.
#include "hetnn/plan/partition/strategies/plan_json.h"

#include "hetnn/base/json_fields.h"

namespace hetnn::plan {
namespace {

using json::Fields;
using json::Json;
using json::one_of;
using json::Presence;

constexpr Presence kOptional = Presence::optional;

const json::Field<Options>& strict() {
  static const json::Field<Options> field = {"strict", &Options::strict, json::any_text(),
                                             "a device on which every node must run", Presence::nullable};
  return field;
}

// The options of each strategy.
const Fields<Options>& option_fields(Strategy strategy) {
  static const Fields<Options> topological = {
      {"order", &Options::order,
       one_of<TopologicalOrder>({{"min", TopologicalOrder::min}, {"index", TopologicalOrder::index}}),
       "min stays on a device as long as it can, index takes the lowest-numbered ready node", kOptional},
      strict()};
  static const Fields<Options> merge = {
      {"criterion", &Options::criterion,
       one_of<Criterion>({{"support", Criterion::support}, {"simd", Criterion::simd}}),
       "which nodes are labelled for an accelerator: all that it supports, or those that suit SIMD", kOptional},
      {"rings", &Options::rings, one_of<Rings>({{"part", Rings::part}, {"merge", Rings::merge}}),
       "two neighbours of an accelerator that a third subgraph joins stay parted, or the three become one of the "
       "general "
       "processor",
       kOptional},
      {"settle", &Options::settle, one_of<Settle>({{"merge", Settle::merge}, {"trim", Settle::trim}}),
       "what moves to the general processor when a subgraph ends in a node that may not be exported", kOptional},
      {"policy", &Options::policy,
       one_of<Policy>({{"all", Policy::all},
                       {"largest", Policy::largest},
                       {"threshold", Policy::threshold},
                       {"largest+threshold", Policy::largest_threshold},
                       {"balance", Policy::balance}}),
       "which subgraphs run on the accelerator", kOptional},
      {"measure", &Options::measure,
       one_of<Measure>({{"nodes", Measure::nodes}, {"macs", Measure::macs}, {"time", Measure::time}}),
       "how the amount of compute is measured", kOptional},
      {"threshold", &Options::threshold, json::number(),
       "with a threshold policy: a subgraph stays only when its amount of compute exceeds this", kOptional},
      strict()};
  static const Fields<Options> cost = {
      {"local_search", &Options::local_search, json::truth(),
       "improve the best candidate by moving nodes and dissolving subgraphs", kOptional},
      {"overlap", &Options::overlap, json::truth(),
       "shorten the schedule in which devices work at the same time, instead of the sum of all times", kOptional},
      strict()};
  static const Fields<Options> none = {strict()};
  switch (strategy) {
    case Strategy::topological:
      return topological;
    case Strategy::merge:
      return merge;
    case Strategy::cost:
      return cost;
    default:
      return none;
  }
}

}  // namespace

Options parse_plan_options(std::string_view strategy, std::string_view options) {
  Options out;
  out.strategy = strategy_from_name(strategy);
  const std::string where = text("strategy '", strategy, "'");
  const Json document = json::parse(options, kStrategyJson, where);
  option_fields(out.strategy).read({document, kStrategyJson, where}, out);
  return out;
}

std::string plan_options_schema(std::string_view strategy) {
  return json::schema_text(text("Options of the strategy ", strategy),
                           option_fields(strategy_from_name(strategy)).schema());
}

std::string plan_json(const Problem& problem, const Options& options, const PartitionResult& result) {
  const auto id = [&](int32_t v) -> const std::string& { return problem.ids[static_cast<size_t>(v)]; };
  const auto device = [&](int32_t d) -> const std::string& { return problem.devices[static_cast<size_t>(d)].name; };
  const auto ids = [&](std::span<const int32_t> nodes) {
    Json list = Json::array();
    for (const int32_t v : nodes) list.push_back(id(v));
    return list;
  };
  Json document;
  document["strategy"] = strategy_name(options.strategy);
  document["subgraphs"] = Json::array();
  for (size_t k = 0; k < result.subgraphs.size(); ++k) {
    const PartitionSubgraph& s = result.subgraphs[k];
    document["subgraphs"].push_back({{"device", device(s.device)},
                                     {"nodes", ids(result.nodes[k])},
                                     {"inputs", ids(result.inputs[k])},
                                     {"outputs", ids(result.outputs[k])},
                                     {"predicted_us", s.predicted_us},
                                     {"start_us", s.start_us},
                                     {"finish_us", s.finish_us}});
  }
  // Objects are kept sorted by key through a plain map: appending to an ordered object looks through all of it.
  nlohmann::json device_of = nlohmann::json::object();
  for (int32_t v = 0; v < problem.size(); ++v) device_of[id(v)] = device(result.device_of[static_cast<size_t>(v)]);
  document["device_of"] = device_of;
  document["crossings"] = Json::array();
  double crossing_bytes = 0;
  for (const PartitionCrossing& c : result.crossings) {
    crossing_bytes += c.bytes;
    document["crossings"].push_back({{"value", id(c.node)},
                                     {"from", device(c.from_device)},
                                     {"to", device(c.to_device)},
                                     {"bytes", c.bytes},
                                     {"transfer_us", c.transfer_us}});
  }
  document["crossing_bytes"] = crossing_bytes;
  document["cost_us"] = result.cost_us;
  document["makespan_us"] = result.makespan_us;
  document["lower_bound_subgraphs"] = Json::object();
  document["subgraphs_on"] = Json::object();
  for (int32_t d = 0; d < problem.device_count(); ++d) {
    document["lower_bound_subgraphs"][device(d)] = result.lower_bound_subgraphs[static_cast<size_t>(d)];
    int64_t count = 0;
    for (const PartitionSubgraph& s : result.subgraphs) count += s.device == d ? 1 : 0;
    document["subgraphs_on"][device(d)] = count;
  }
  if (result.lower_bound_us >= 0) {
    document["lower_bound_us"] = result.lower_bound_us;
    document["gap"] = result.lower_bound_us > 0 ? result.cost_us / result.lower_bound_us - 1 : 0.0;
  }
  if (result.cut_us >= 0) document["cut_us"] = result.cut_us;
  if (!result.candidates.empty()) {
    document["candidates"] = Json::array();
    for (const PartitionCandidate& c : result.candidates)
      document["candidates"].push_back({{"name", c.name}, {"cost_us", c.cost_us}});
  }
  document["notes"] = Json::array();
  for (const PartitionNote& note : result.notes) {
    Json entry = {{"text", note.text}};
    if (note.node >= 0) entry["node"] = id(note.node);
    document["notes"].push_back(std::move(entry));
  }
  document["plan_us"] = result.plan_us;
  return document.dump();
}

}  // namespace hetnn::plan
