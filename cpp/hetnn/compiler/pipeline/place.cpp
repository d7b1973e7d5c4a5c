// Gives every node a device. Accelerator subgraphs are lowered on trial, and the plan is repaired where one is refused.
#include <map>
#include <optional>
#include <string_view>

#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {
namespace {

// Lowers a subgraph into a program that is thrown away, and says what its backend had against it.
std::optional<plan::SubgraphRefusal> try_lowering(const Draft& draft, const plan::Subgraph& subgraph) {
  ir::Graph extracted = plan::extract(draft.graph, subgraph);
  for (ir::Node* node : extracted.nodes()) {
    if (node->is_constant()) continue;
    node->device = subgraph.device;
    node->subgraph = 0;
  }
  backends::Assembler scratch;
  for (const auto* values : {&subgraph.inputs, &subgraph.outputs}) {
    for (const ir::Value* value : *values) declare_crossing(draft.graph, *value, scratch);
  }
  const auto first_line = [](const char* what) {
    const std::string message = what;
    return message.substr(0, message.find('\n'));
  };
  const backends::Backend& backend = draft.backend(subgraph.device);
  try {
    compute_in_f32(extracted, backend);
    fuse(extracted, backend, draft.lowering);
    program::Subprogram made = backend.lower(extracted, scratch, draft.lowering);
    // A schedule that the user gives is of the subgraph as it will be.
    backends::LowerOptions lowering = draft.lowering;
    lowering.schedule.clear();
    backend.add_variant(extracted, draft.graph.hints(), made, scratch, lowering);
    for (const Bindings& bindings : draft.options.shapes)
      backend.add_variant(extracted, bindings, made, scratch, lowering);
  } catch (const backends::NodeDoesNotFit& error) {
    return plan::SubgraphRefusal{first_line(error.what()), error.node()};
  } catch (const DoesNotFit& error) {
    return plan::SubgraphRefusal{first_line(error.what()), {}};
  } catch (const Unsupported& error) {
    return plan::SubgraphRefusal{first_line(error.what()), {}};
  }
  return std::nullopt;
}

// Tells of nodes that no accelerator takes what would have let a rule rewrite them.
void add_range_reasons(Draft& draft) {
  if (draft.out_of_range.empty()) return;
  std::map<std::string_view, size_t> places;
  for (size_t k = 0; k < draft.plan.nodes.size(); ++k) places.emplace(draft.plan.nodes[k]->name(), k);
  for (const passes::OutOfRange& row : draft.out_of_range) {
    const auto at = places.find(row.node);
    if (at == places.end()) continue;
    auto& answers = draft.plan.support[at->second];
    for (size_t d = 1; d < answers.size(); ++d) {
      if (answers[d].ok()) continue;
      answers[d].reasons.push_back(
          {text(draft.plan.nodes[at->second]->op().name, "_range"), text("|x| up to ", row.largest),
           text("no |x| above ", row.within),
           text("the rule ", row.rule,
                " would rewrite it for the device if its inputs were known to be so small; the "
                "option inputs_within says so of the model's inputs")});
    }
  }
}

}  // namespace

void place(Draft& draft) {
  draft.plan = plan::plan_network(draft.graph, draft.target, draft.network,
                                  [&](const plan::Subgraph& subgraph) { return try_lowering(draft, subgraph); });
  draft.plan.target = &draft.target;
  add_range_reasons(draft);
  for (size_t k = 0; k < draft.plan.nodes.size(); ++k) {
    const auto device = static_cast<size_t>(draft.plan.result.device_of[k]);
    draft.plan.nodes[k]->device = draft.target.devices[device]->name();
  }
  draft.graph.stage = ir::Stage::placed;
}

}  // namespace hetnn::pipeline
