// Plans the bodies of loops as models of their own.
#include <algorithm>

#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/body_graph.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ops/control/loop.h"

namespace hetnn::pipeline {
namespace {

// What was said of the model's own inputs, nodes and sizes does not go with a body.
CompileOptions options_of(const CompileOptions& model, const std::vector<Symbol>& symbols) {
  CompileOptions out = model;
  out.pin.clear();
  out.strict.reset();
  out.inputs_within.clear();
  out.states.clear();
  out.measured_us.clear();
  out.dump = "";
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
    const CompileOptions options = options_of(draft.options, symbols);
    const auto [at, fresh] =
        draft.bodies.emplace(node->name(), std::make_unique<Draft>(std::move(body), draft.spec, options));
    run_passes(*at->second, ir::Stage::cut);
  }
}

}  // namespace hetnn::pipeline
