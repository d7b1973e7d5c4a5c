// The answers about a plan as JSON.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/explain/explain.h"

namespace hetnn::plan {
namespace {

using Json = nlohmann::ordered_json;

const std::string& device_name(const Problem& problem, int32_t d) {
  return problem.devices[static_cast<size_t>(d)].name;
}

/// Microseconds, null where impossible.
Json figure(double us) { return us < kUnsupported ? Json(us) : Json(nullptr); }

Json by_device(const Problem& problem, const std::vector<double>& values) {
  Json object = Json::object();
  for (int32_t d = 0; d < problem.device_count(); ++d)
    object[device_name(problem, d)] = figure(values[static_cast<size_t>(d)]);
  return object;
}

}  // namespace

std::string why_json(const Problem& problem, const PartitionResult& result, const std::string& id) {
  const auto found = std::find(problem.ids.begin(), problem.ids.end(), id);
  if (found == problem.ids.end()) {
    throw InvalidModel(text("why: there is no node '", id, "'; the problem has ", problem.size(), " nodes."));
  }
  const Why why = explain_node(problem, result, static_cast<int32_t>(found - problem.ids.begin()));
  Json document = {{"node", id},
                   {"device", device_name(problem, why.device)},
                   {"subgraph", why.subgraph},
                   {"time_us", by_device(problem, why.time_us)},
                   {"plan_cost_us", by_device(problem, why.plan_cost_us)},
                   {"reasons", Json::array()},
                   {"change", why.change}};
  for (const WhyReason& r : why.reasons) {
    document["reasons"].push_back({{"device", device_name(problem, r.device)},
                                   {"label", r.label},
                                   {"found", r.found},
                                   {"wanted", r.wanted},
                                   {"text", r.text}});
  }
  return document.dump();
}

std::string explain_json(const Problem& problem, const PartitionResult& result) {
  const Account account = account_of(problem, result);
  const auto or_null = [](std::optional<double> value) { return value ? Json(*value) : Json(nullptr); };
  Json document = {{"cost_us", result.cost_us},
                   {"cut_us", or_null(account.cut_us)},
                   {"lower_bound_us", or_null(account.lower_bound_us)},
                   {"gap", or_null(account.gap)},
                   {"candidates", Json::array()}};
  for (const PartitionCandidate& c : account.candidates)
    document["candidates"].push_back({{"name", c.name}, {"cost_us", c.cost_us}});
  document["margin_us"] = or_null(account.margin_us);
  document["parts"] = {
      {"node_us", account.node_us}, {"launch_us", account.launch_us}, {"transfer_us", account.transfer_us}};
  document["makespan_us"] = result.makespan_us;
  document["subgraphs"] = Json::object();
  for (int32_t d = 0; d < problem.device_count(); ++d) {
    const auto count = std::count_if(result.subgraphs.begin(), result.subgraphs.end(),
                                     [&](const PartitionSubgraph& s) { return s.device == d; });
    document["subgraphs"][device_name(problem, d)] = {
        {"count", count}, {"lower_bound", result.lower_bound_subgraphs[static_cast<size_t>(d)]}};
  }
  return document.dump();
}

std::string what_if_json(const Problem& problem, const Options& options, const PartitionResult& result,
                         const std::vector<std::string>& kinds) {
  Json list = Json::array();
  for (const WhatIf& answer : what_if(problem, options, result, kinds)) {
    Json ids = Json::array();
    for (const int32_t v : answer.nodes) ids.push_back(problem.ids[static_cast<size_t>(v)]);
    list.push_back({{"device", device_name(problem, answer.device)},
                    {"support", answer.kind},
                    {"nodes", std::move(ids)},
                    {"cost_us", answer.cost_us},
                    {"gain_us", answer.gain_us}});
  }
  return list.dump();
}

std::string diff_json(const Problem& problem, const PartitionResult& before, const Problem& other_problem,
                      const PartitionResult& after) {
  std::unordered_map<std::string_view, int32_t> there;
  for (int32_t v = 0; v < other_problem.size(); ++v) there.emplace(other_problem.ids[static_cast<size_t>(v)], v);
  Json moved = Json::array(), removed = Json::array(), added = Json::array();
  std::vector<uint8_t> met(other_problem.ids.size(), 0);
  for (int32_t v = 0; v < problem.size(); ++v) {
    const std::string& id = problem.ids[static_cast<size_t>(v)];
    const auto found = there.find(id);
    if (found == there.end()) {
      removed.push_back(id);
      continue;
    }
    met[static_cast<size_t>(found->second)] = 1;
    const std::string& from = device_name(problem, before.device_of[static_cast<size_t>(v)]);
    const std::string& to = device_name(other_problem, after.device_of[static_cast<size_t>(found->second)]);
    if (from != to) moved.push_back({{"node", id}, {"from", from}, {"to", to}});
  }
  for (size_t v = 0; v < met.size(); ++v) {
    if (met[v] == 0) added.push_back(other_problem.ids[v]);
  }
  const Json document = {{"moved", std::move(moved)},
                         {"only_before", std::move(removed)},
                         {"only_after", std::move(added)},
                         {"cost_us", {{"before", before.cost_us}, {"after", after.cost_us}}},
                         {"makespan_us", {{"before", before.makespan_us}, {"after", after.makespan_us}}},
                         {"subgraphs", {{"before", before.subgraphs.size()}, {"after", after.subgraphs.size()}}}};
  return document.dump();
}

}  // namespace hetnn::plan
