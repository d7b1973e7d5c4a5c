// Plans the bodies of loops as models of their own.
#include <algorithm>
#include <functional>

#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/body_graph.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ops/control/loop.h"

namespace hetnn::pipeline {
namespace {

// What the nodes of a draft and of its bodies need of each device's memory. What a loop holds, its body tells.
std::vector<double> constant_bytes(const Draft& draft) {
  const plan::NetworkPlan& plan = draft.plan;
  std::vector<double> out(plan.problem.devices.size());
  for (size_t k = 0; k < plan.nodes.size(); ++k) {
    if (!ops::is_loop(plan.nodes[k]->call()))
      out[static_cast<size_t>(plan.result.device_of[k])] += plan.problem.weight_bytes[k];
  }
  for (const auto& [loop, body] : draft.bodies)
    std::ranges::transform(out, constant_bytes(*body), out.begin(), std::plus());
  return out;
}

// Memory of devices that have a bound is what is left of it; what was said of the model's own inputs and sizes does not
// go with a body.
CompileOptions options_of(const Draft& draft, const std::vector<Symbol>& symbols) {
  const CompileOptions& model = draft.options;
  CompileOptions out = model;
  const std::vector<double> used_bytes = constant_bytes(draft);
  for (size_t d = 0; d < used_bytes.size(); ++d) {
    const double most = draft.plan.problem.devices[d].budget_bytes;
    if (most >= 0) out.memory_budget[draft.target.devices[d]->name()] = std::max(0.0, most - used_bytes[d]);
  }
  out.strict.reset();
  out.inputs_within.clear();
  out.states.clear();
  out.measured_us.clear();
  out.dump = "";
  out.keep_graph = false;  // the text of the model's own has its loops
  out.shapes.clear();
  for (const Bindings& given : model.shapes) {
    Bindings known;
    for (const Symbol& symbol : symbols) {
      if (const auto at = given.find(symbol.name); at != given.end()) known.insert(*at);
    }
    if (known.size() == symbols.size()) out.shapes.push_back(std::move(known));
  }
  return out;
}

}  // namespace

void plan_bodies(Draft& draft) {
  for (const ir::Node* node : draft.graph.nodes()) {
    if (!ops::is_loop(node->call())) continue;
    ir::Graph body = ir::body_graph(draft.graph, *node);
    const std::vector<Symbol> symbols = ir::free_symbols(body);
    // A size that a run finds may be negative, and no shape can hand such a one over.
    if (std::ranges::any_of(symbols, [](const Symbol& symbol) { return symbol.min < 0; })) continue;
    const CompileOptions options = options_of(draft, symbols);
    const auto [at, fresh] =
        draft.bodies.emplace(node->name(), std::make_unique<Draft>(std::move(body), draft.spec, options));
    run_passes(*at->second, ir::Stage::cut);
    draft.plan.rules_met.insert(at->second->plan.rules_met.begin(), at->second->plan.rules_met.end());
  }
}

}  // namespace hetnn::pipeline
