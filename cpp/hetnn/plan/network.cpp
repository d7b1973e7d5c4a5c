// Planning a network: from a graph and a target to a planning problem, and from its plan back to the graph.
#include "hetnn/plan/network.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/plan/partition/explain/explain.h"

namespace hetnn::plan {
namespace {

bool within_module(std::string_view scope, std::string_view module) {
  return scope == module ||
         (scope.size() > module.size() && scope.substr(0, module.size()) == module && scope[module.size()] == '.');
}

// One pattern may be the name of a node here and of an operator there.
std::string key_of(const NodeRule& rule) { return text(static_cast<int>(rule.by), " ", rule.pattern); }

bool matches(const NodeRule& rule, const std::regex& expression, const ir::Node& node) {
  switch (rule.by) {
    case NodeRule::By::name:
      return node.is_called(rule.pattern);
    case NodeRule::By::op:
      return node.op().name == rule.pattern;
    case NodeRule::By::module:
      return within_module(node.loc().scope, rule.pattern) ||
             std::any_of(node.aliases.begin(), node.aliases.end(),
                         [&](const std::string& alias) { return within_module(alias, rule.pattern); });
    case NodeRule::By::regex:
      return std::regex_match(node.name(), expression) || std::regex_match(node.loc().scope, expression);
  }
  return false;
}

// Calls apply(number of a node, device) for each node that a rule matches.
template <typename Apply>
void apply_rule(const NodeRule& rule, const target::Target& target, NetworkPlan& plan, const Apply& apply) {
  const size_t device = target.device_index(rule.device);
  std::regex expression;
  if (rule.by == NodeRule::By::regex) {
    try {
      expression = std::regex(rule.pattern);
    } catch (const std::regex_error& error) {
      throw InvalidModel(text("'", rule.pattern, "' is no regular expression: ", error.what(), "."));
    }
  }
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    if (!matches(rule, expression, *plan.nodes[k])) continue;
    plan.rules_met.insert(key_of(rule));
    apply(k, device);
  }
}

void apply_rules(const NetworkOptions& options, const target::Target& target, NetworkPlan& plan) {
  if (!options.pins.empty()) plan.problem.pins.resize(plan.nodes.size());
  for (const NodeRule& pin : options.pins) {
    apply_rule(pin, target, plan, [&](size_t node, size_t device) {
      plan.problem.pins[node] = {static_cast<int32_t>(device), pin.hard};
    });
  }
  for (const NodeRule& rule : options.non_exportable) {
    apply_rule(rule, target, plan,
               [&](size_t node, size_t device) { plan.problem.exportable[node * target.devices.size() + device] = 0; });
  }
}

int64_t constant_bytes(const ir::Node& node) {
  int64_t sum = 0;
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    if (const Tensor* constant = node.constant_input(k)) sum += constant->bytes();
  }
  return sum;
}

std::string reasons_text(const std::vector<ops::Reason>& reasons) {
  std::string out;
  for (const ops::Reason& reason : reasons)
    out += text("\n    ", reason.label, ": ", reason.text, " (found ", reason.found, ", wanted ", reason.wanted, ")");
  return out;
}

void refuse_homeless(const NetworkPlan& plan, const target::Target& target) {
  std::string homeless;
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    const auto& answers = plan.support[k];
    if (std::any_of(answers.begin(), answers.end(), [](const target::Support& s) { return s.ok(); })) continue;
    const std::string where = ops::to_string(plan.nodes[k]->loc());
    homeless += text("\n  ", ir::describe(*plan.nodes[k]), where.empty() ? "" : " at " + where);
    for (size_t d = 0; d < answers.size(); ++d)
      homeless += text("\n   ", target.devices[d]->name(), ":", reasons_text(answers[d].reasons));
  }
  if (!homeless.empty()) {
    throw Unsupported(
        text("target '", target.name,
             "' has no device for these nodes. Change the model there or choose another target:", homeless));
  }
}

// A device that is to run everything says why it does not.
void refuse_strict(const NetworkPlan& plan, const target::Target& target, const std::string& strict) {
  const auto device = std::find_if(target.devices.begin(), target.devices.end(),
                                   [&](const auto& each) { return each->name() == strict; });
  if (device == target.devices.end()) return;
  std::string offenders;
  size_t count = 0;
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    const target::Support& answer = plan.support[k][static_cast<size_t>(device - target.devices.begin())];
    if (answer.ok()) continue;
    offenders += text("\n  '", plan.nodes[k]->name(), "':", reasons_text(answer.reasons));
    ++count;
  }
  if (count > 0)
    throw Unsupported(
        text("strict: ", count, " of ", plan.nodes.size(), " nodes cannot run on '", strict, "':", offenders));
}

// What `together_us` says in place of times by themselves. Measured times stay.
void share_times_together(const ir::Graph& graph, const Bindings& hints, const NetworkOptions& options,
                          NetworkPlan& plan) {
  for (int32_t d = 0; d < plan.problem.device_count(); ++d) {
    const target::Device& device = *plan.target->devices[static_cast<size_t>(d)];
    std::map<const ir::Node*, double> alone_us;
    for (size_t k = 0; k < plan.nodes.size(); ++k) {
      const auto measured = options.measured_us.find(plan.nodes[k]->name());
      const bool predicted = measured == options.measured_us.end() || !measured->second.contains(device.name());
      if (predicted && plan.support[k][static_cast<size_t>(d)].ok())
        alone_us[plan.nodes[k]] = plan.problem.time_of(static_cast<int32_t>(k), d);
    }
    const std::map<const ir::Node*, double> shares =
        device.together_us(graph, hints, alone_us, options.fusion, options.deterministic);
    for (size_t k = 0; k < plan.nodes.size(); ++k) {
      if (const auto share = shares.find(plan.nodes[k]); share != shares.end())
        plan.problem.time_of(static_cast<int32_t>(k), d) = share->second;
    }
  }
}

using Definers = std::map<std::string, ir::Node*, std::less<>>;

// The symbols that a node reads and other nodes define.
std::set<std::string> found_sizes(const ir::Node& node, const Definers& definers) {
  std::set<std::string> out;
  if (!definers.empty()) ops::collect_needed_symbols(node.call(), out);
  std::erase_if(out, [&](const std::string& symbol) { return !definers.contains(symbol); });
  return out;
}

// The nodes that a node reads values of, or sizes: a symbol that another node defines is read of that node.
std::vector<int32_t> producers_of(const ir::Node& node, const std::map<const ir::Node*, int32_t>& index,
                                  const Definers& definers, const std::set<std::string>& sizes) {
  std::vector<int32_t> out;
  const auto add = [&](const ir::Node* producer) {
    const int32_t at = index.at(producer);
    if (std::find(out.begin(), out.end(), at) == out.end()) out.push_back(at);
  };
  for (const ir::Value* input : node.inputs()) {
    if (input && input->producer() && !input->producer()->is_constant()) add(input->producer());
  }
  for (const std::string& symbol : sizes) add(definers.find(symbol)->second);
  return out;
}

// What every device says of a node, and its times where they support it.
void label_and_price(const ir::Node& node, int32_t at, bool from_values, const Bindings& hints,
                     const NetworkOptions& options, NetworkPlan& plan) {
  const auto device_count = static_cast<int32_t>(plan.target->devices.size());
  auto& support = plan.support.emplace_back();
  auto measured = options.measured_us.find(node.name());
  if (measured != options.measured_us.end()) ++plan.measured_nodes;
  for (int32_t d = 0; d < device_count; ++d) {
    const target::Device& device = *plan.target->devices[static_cast<size_t>(d)];
    support.push_back(device.support(node));
    if (from_values && d > 0) {
      support.back().reasons.push_back({text(node.op().name, "_size"), to_string(node.output()->shape()),
                                        "a size known before the run",
                                        text("Sizes that depend on values come out while the model runs; ",
                                             device.name(), " needs them when it compiles.")});
    }
    if (!support.back().ok()) continue;
    try {
      plan.problem.time_of(at, d) = device.time_us(node, hints);
    } catch (const DoesNotFit& error) {
      // Asked about a dynamic model's small sizes, the device said yes; at the planned sizes it does not fit.
      const std::string sentence = error.what();
      support.back().reasons.push_back({text(node.op().name, "_fit"), to_string(node.output()->shape()),
                                        "a size that fits the device", sentence.substr(0, sentence.find('\n'))});
      continue;
    }
    if (measured != options.measured_us.end()) {
      if (auto time = measured->second.find(device.name()); time != measured->second.end())
        plan.problem.time_of(at, d) = time->second;
    }
    plan.problem.exportable[static_cast<size_t>(at) * static_cast<size_t>(device_count) + static_cast<size_t>(d)] =
        device.exportable(node);
  }
}

}  // namespace

size_t NetworkPlan::index_of(std::string_view node) const {
  for (size_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k]->name() == node) return k;
  }
  for (size_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k]->is_called(node)) return k;
  }
  throw InvalidModel(text("the plan has no node '", node, "'. `report()` lists the nodes of every subgraph."));
}

void require_rules(const NetworkOptions& options, const std::set<std::string>& met) {
  const auto require = [&](std::string_view option, const std::vector<NodeRule>& rules) {
    for (const NodeRule& rule : rules) {
      if (met.contains(key_of(rule))) continue;
      throw InvalidModel(
          text(option, " '", rule.pattern, "' matches no node. `hetnn plan --json` lists the nodes' names."));
    }
  };
  require("pin", options.pins);
  require("non_exportable", options.non_exportable);
}

NetworkPlan describe_network(const ir::Graph& graph, const target::Target& target, const NetworkOptions& options) {
  NetworkPlan plan;
  plan.target = &target;
  Problem& problem = plan.problem;
  for (const auto& device : target.devices) {
    problem.devices.push_back({device->name(), device->launch_us(), device->connected(),
                               static_cast<double>(device->constant_budget_bytes())});
  }
  for (const auto& [device, bytes] : options.memory_budget_bytes) {
    double& bound = problem.devices[target.device_index(device)].budget_bytes;
    if (!(bytes >= 0))
      throw InvalidModel(text("memory_budget of '", device, "' must be 0 or more bytes; got ", bytes, "."));
    bound = bound < 0 ? bytes : std::min(bound, bytes);
  }
  problem.set_links({target.default_bytes_per_us, target.default_latency_us});
  for (const target::Link& link : target.links) {
    const size_t from = target.device_index(link.from), to = target.device_index(link.to);
    problem.links[from * target.devices.size() + to] = {link.bytes_per_us, link.latency_us};
  }
  const Bindings hints = graph.hints();
  const auto definers = ir::definers(graph);
  std::map<const ir::Node*, int32_t> index;
  for (ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    const std::set<std::string> sizes = found_sizes(*node, definers);
    const std::vector<int32_t> inputs = producers_of(*node, index, definers, sizes);
    const int32_t at = problem.add_node(node->name(), inputs);
    index[node] = at;
    plan.nodes.push_back(node);
    label_and_price(*node, at, !sizes.empty() || !ops::defined_symbols(node->call()).empty(), hints, options, plan);
    const auto last = static_cast<size_t>(at);
    for (const ir::Value* output : node->outputs())
      problem.output_bytes[last] += static_cast<double>(target::value_bytes(*output, hints));
    problem.macs[last] = target::work_of(*node, hints).macs;
    problem.compute[last] = node->op().has(ops::Trait::compute);
    problem.simd.push_back(problem.compute[last] != 0 || node->op().has(ops::Trait::elementwise) ? 1 : 0);
    problem.weight_bytes.push_back(static_cast<double>(constant_bytes(*node)));
    problem.ops.emplace_back(node->op().name);
  }
  share_times_together(graph, hints, options, plan);
  apply_rules(options, target, plan);
  return plan;
}

namespace {

// Planning took the times of nodes as if a device ran all that it can; here those of the subgraphs as they are.
void price_subgraphs(const ir::Graph& graph, const NetworkOptions& options, NetworkPlan& plan) {
  for (size_t s = 0; s < plan.result.subgraphs.size(); ++s) {
    const int32_t place = plan.result.subgraphs[s].device;
    const target::Device& device = *plan.target->devices[static_cast<size_t>(place)];
    std::map<const ir::Node*, double> alone_us;
    for (const int32_t node : plan.result.nodes[s]) {
      const ir::Node* const at = plan.nodes[static_cast<size_t>(node)];
      const auto measured = options.measured_us.find(at->name());
      if (measured == options.measured_us.end() || !measured->second.contains(device.name()))
        alone_us[at] = plan.problem.time_of(node, place);
    }
    if (alone_us.size() < plan.result.nodes[s].size()) continue;  // measured ones stay
    const std::map<const ir::Node*, double> shares =
        device.together_us(graph, graph.hints(), alone_us, options.fusion, options.deterministic);
    for (const int32_t node : plan.result.nodes[s]) {
      const auto share = shares.find(plan.nodes[static_cast<size_t>(node)]);
      if (share != shares.end()) plan.problem.time_of(node, place) = share->second;
    }
  }
  price_again(plan.problem, plan.result);
}

}  // namespace

NetworkPlan plan_network(const ir::Graph& graph, const target::Target& target, const NetworkOptions& options,
                         const SubgraphTrial& trial) {
  NetworkPlan plan = describe_network(graph, target, options);
  refuse_homeless(plan, target);
  refuse_strict(plan, target, options.partition.strict);
  if (!trial || target.devices.size() < 2) {
    plan.result = partition(plan.problem, options.partition);
    price_subgraphs(graph, options, plan);
    return plan;
  }
  struct Refused {
    int32_t node, device;
    std::string reason;
  };
  std::vector<Refused> refused;
  const auto ask = [&](const PartitionResult& result, int32_t number) {
    const int32_t place = result.subgraphs[static_cast<size_t>(number)].device;
    const std::span<const int32_t> asked = result.nodes[static_cast<size_t>(number)];
    std::vector<ir::Node*> nodes;
    for (int32_t node : asked) nodes.push_back(plan.nodes[static_cast<size_t>(node)]);
    const std::string& device = target.devices[static_cast<size_t>(place)]->name();
    Refusal out;
    const std::optional<SubgraphRefusal> answer = trial(subgraph_of_nodes(graph, device, std::move(nodes)));
    if (!answer) return out;
    out.refused = true;
    out.reason = answer->reason;
    for (int32_t node : asked) {
      const bool alone = asked.size() == 1;
      if (!alone && plan.nodes[static_cast<size_t>(node)]->name() != answer->node) continue;
      out.nodes.push_back(node);
      refused.push_back({node, place, answer->reason});
    }
    return out;
  };
  plan.result = partition_with_repair(plan.problem, options.partition, ask);
  for (const Refused& row : refused) {
    const auto node = static_cast<size_t>(row.node);
    if (plan.result.device_of[node] == row.device) continue;
    plan.problem.time_of(row.node, row.device) = kUnsupported;
    std::vector<ops::Reason>& reasons = plan.support[node][static_cast<size_t>(row.device)].reasons;
    if (!reasons.empty()) continue;
    reasons.push_back({text(plan.nodes[node]->op().name, "_refused"), to_string(plan.nodes[node]->output()->shape()),
                       "what the device's backend can compile", row.reason});
  }
  price_subgraphs(graph, options, plan);
  return plan;
}

void apply(const NetworkPlan& plan, ir::Graph& graph) {
  std::vector<Placement> placements;
  for (size_t s = 0; s < plan.result.subgraphs.size(); ++s) {
    const int32_t device = plan.result.subgraphs[s].device;
    for (int32_t node : plan.result.nodes[s]) {
      placements.push_back({plan.nodes[static_cast<size_t>(node)],
                            plan.target->devices[static_cast<size_t>(device)]->name(), static_cast<int>(s)});
    }
  }
  split_at_definitions(placements);
  cut(graph, placements);
}

}  // namespace hetnn::plan
