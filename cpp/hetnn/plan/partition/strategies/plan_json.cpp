// Plans and their options as JSON.
#include "hetnn/plan/partition/strategies/plan_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"

namespace hetnn::plan {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
struct Choice {
  std::string_view name;
  T value;
};

template <typename T, size_t N>
T choose(const Json& value, const std::string& option, const Choice<T> (&choices)[N]) {
  std::string names;
  for (const Choice<T>& choice : choices) {
    if (value.is_string() && value.get_ref<const std::string&>() == choice.name) return choice.value;
    names += std::string(names.empty() ? "" : ", ") + std::string(choice.name);
  }
  throw InvalidModel(text("option ", option, ": must be one of ", names, "; got ", value.dump(), "."));
}

constexpr Choice<TopologicalOrder> kOrders[] = {{"min", TopologicalOrder::min}, {"index", TopologicalOrder::index}};
constexpr Choice<Settle> kSettles[] = {{"merge", Settle::merge}, {"trim", Settle::trim}};
constexpr Choice<Policy> kPolicies[] = {{"all", Policy::all},
                                        {"largest", Policy::largest},
                                        {"threshold", Policy::threshold},
                                        {"largest+threshold", Policy::largest_threshold},
                                        {"balance", Policy::balance}};
constexpr Choice<Measure> kMeasures[] = {{"nodes", Measure::nodes}, {"macs", Measure::macs}, {"time", Measure::time}};

bool read_option(Options& options, const std::string& key, const Json& value) {
  const Strategy s = options.strategy;
  if (key == "order" && s == Strategy::topological) {
    options.order = choose(value, key, kOrders);
  } else if (key == "settle" && s == Strategy::merge) {
    options.settle = choose(value, key, kSettles);
  } else if (key == "policy" && s == Strategy::merge) {
    options.policy = choose(value, key, kPolicies);
  } else if (key == "measure" && s == Strategy::merge) {
    options.measure = choose(value, key, kMeasures);
  } else if (key == "threshold" && s == Strategy::merge) {
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      throw InvalidModel(text("option threshold: must be a finite number, got ", value.dump(), "."));
    options.threshold = value.get<double>();
  } else if (key == "local_search" && s == Strategy::cost) {
    if (!value.is_boolean())
      throw InvalidModel(text("option local_search: must be true or false, got ", value.dump(), "."));
    options.local_search = value.get<bool>();
  } else if (key == "overlap" && s == Strategy::cost) {
    if (!value.is_boolean()) throw InvalidModel(text("option overlap: must be true or false, got ", value.dump(), "."));
    options.overlap = value.get<bool>();
  } else if (key == "strict") {
    if (!value.is_string() && !value.is_null())
      throw InvalidModel(text("option strict: must be the name of a device, got ", value.dump(), "."));
    if (value.is_string()) options.strict = value.get<std::string>();
  } else {
    return false;
  }
  return true;
}

std::string option_names(Strategy strategy) {
  switch (strategy) {
    case Strategy::topological:
      return "order, strict";
    case Strategy::merge:
      return "settle, policy, measure, threshold, strict";
    case Strategy::cost:
      return "local_search, overlap, strict";
    default:
      return "strict";
  }
}

}  // namespace

Options parse_plan_options(std::string_view strategy, std::string_view json) {
  Options options;
  options.strategy = strategy_from_name(strategy);
  Json document;
  try {
    document = Json::parse(json.begin(), json.end());
  } catch (const Json::parse_error& error) {
    throw InvalidModel(text("options: this is not JSON: ", error.what(), "."));
  }
  if (!document.is_object()) throw InvalidModel(text("options: must be an object, got ", document.dump(), "."));
  for (const auto& [key, value] : document.items()) {
    if (read_option(options, key, value)) continue;
    throw InvalidModel(text("option ", key, ": strategy '", strategy, "' has no such option; it has ",
                            option_names(options.strategy), "."));
  }
  return options;
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
