// What a network would gain if a device supported one more of its operators.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"
#include "hetnn/plan/partition/explain/explain.h"

namespace hetnn {
namespace {

using Json = nlohmann::ordered_json;

bool is_called(const ops::OpDef& op, std::string_view word) {
  return op.name == word ||
         std::any_of(op.torch.begin(), op.torch.end(), [&](const auto& name) { return name.overload == word; }) ||
         std::any_of(op.onnx.begin(), op.onnx.end(), [&](const auto& name) { return name.op_type == word; });
}

/// Operators of the graph that some accelerator lacks for some node, of those asked for; in the order of their names.
std::set<std::string> lacking_ops(const plan::NetworkPlan& written, const std::vector<std::string>& words) {
  std::set<std::string> lacking, present;
  std::vector<uint8_t> known(words.size(), 0);
  for (size_t k = 0; k < written.nodes.size(); ++k) {
    const ops::OpDef& op = written.nodes[k]->op();
    present.emplace(op.name);
    bool wanted = words.empty();
    for (size_t w = 0; w < words.size(); ++w) {
      if (!is_called(op, words[w])) continue;
      wanted = true;
      known[w] = 1;
    }
    const auto& support = written.support[k];
    if (wanted && std::any_of(support.begin() + 1, support.end(), [](const auto& answer) { return !answer.ok(); }))
      lacking.emplace(op.name);
  }
  for (size_t w = 0; w < words.size(); ++w) {
    if (known[w] != 0) continue;
    std::string names;
    for (const std::string& name : present) names += (names.empty() ? "" : ", ") + name;
    throw InvalidModel(text("what_if: no node of the model has the operator '", words[w], "'; it has ", names, "."));
  }
  return lacking;
}

}  // namespace

std::string PlannedModel::what_if(const std::vector<std::string>& ops) const {
  const pipeline::Draft& draft = *draft_;
  const std::vector<report::RewriteRow>& rewrites = draft.rewrites;
  struct Row {
    double gain_us;
    Json json;
  };
  const plan::NetworkPlan written = plan::describe_network(draft.canonical, draft.target, draft.network);
  std::vector<Row> rows;
  for (const std::string& op : lacking_ops(written, ops)) {
    const bool rewritten = std::any_of(rewrites.begin(), rewrites.end(), [&](const auto& row) { return row.op == op; });
    // A device that had the operator would leave its nodes as they are written; all other rewrites stay.
    ir::Graph legal;
    plan::NetworkPlan other;
    if (rewritten) {
      legal = draft.canonical.clone();
      passes::LegalizeOptions legalize = draft.legalize_options();
      for (const ir::Node* node : written.nodes) {
        if (node->op().name == op) legalize.excluded_nodes.insert(node->name());
      }
      passes::legalize(legal, passes::accelerators(draft.target, legal.hints()), legalize);
      other = plan::describe_network(legal, draft.target, draft.network);
    }
    const plan::NetworkPlan& base = rewritten ? other : draft.plan;
    for (plan::WhatIf answer : plan::what_if(base.problem, draft.network.partition, draft.plan.result, {op})) {
      // A device that has the operator may still run the rewritten form.
      if (rewritten && answer.gain_us < 0) answer.cost_us = draft.plan.result.cost_us, answer.gain_us = 0;
      Json nodes = Json::array();
      for (const int32_t node : answer.nodes) {
        const ir::Node& at = *base.nodes[static_cast<size_t>(node)];
        nodes.push_back({{"node", at.name()}, {"loc", ops::to_string(at.loc())}, {"module", at.loc().scope}});
      }
      rows.push_back({answer.gain_us,
                      {{"device", draft.target.devices[static_cast<size_t>(answer.device)]->name()},
                       {"support", op},
                       {"nodes", std::move(nodes)},
                       {"rewritten", rewritten},
                       {"cost_us", answer.cost_us},
                       {"gain_us", answer.gain_us}}});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.gain_us > b.gain_us; });
  Json out = Json::array();
  for (Row& row : rows) out.push_back(std::move(row.json));
  return out.dump();
}

}  // namespace hetnn
