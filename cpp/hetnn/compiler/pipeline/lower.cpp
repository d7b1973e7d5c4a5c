// Lowers every subgraph into code for its device.
#include <algorithm>
#include <map>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/symbols.h"

namespace hetnn::pipeline {

namespace {

// What the general processor computes where an accelerator has no code for some sizes and nothing can make it, and
// where it is gone.
program::Code fallback_of(Draft& draft, const plan::Subgraph& subgraph) {
  const backends::Backend& general = *draft.backends.front();
  ir::Graph alone = plan::extract(draft.graph, subgraph);
  for (ir::Node* node : alone.nodes()) {
    if (!node->is_constant()) node->device = general.name();
  }
  compute_in_f32(alone, general);
  fuse(alone, general, draft.lowering);
  return general.lower(alone, draft.assembler, draft.lowering).code;
}

// Smaller constants are left to whoever asks for their values.
constexpr int64_t kLarge_bytes = int64_t{1} << 16;

void forget(const ir::Value& constant) {
  ir::Node* const node = constant.producer();
  if (node->tensor("value").bytes() >= kLarge_bytes) ir::Rewriter::forget(node);
}

void forget_constants(const ir::Graph& graph) {
  for (const ir::Node* node : graph.nodes()) {
    if (node->is_constant()) forget(*node->output());
  }
}

// Whether the subgraphs alone are read from here on, each once.
bool can_spend(const Draft& draft) {
  return !draft.options.keep_graph && !draft.options.fallback && draft.number < 0 && draft.bodies.empty() &&
         !has_variants(draft);
}

}  // namespace

void lower(Draft& draft) {
  const std::string& general = draft.backends.front()->name();
  if (draft.options.fallback && *draft.options.fallback != general) {
    throw InvalidModel(text("fallback is '", *draft.options.fallback, "'; only the general processor, '", general,
                            "', can take every node. Name it, or leave fallback out."));
  }
  program::Program& program = draft.assembler.program();
  const std::vector<plan::Subgraph> subgraphs = plan::subgraphs_of(draft.graph);
  const bool dynamic = !ir::free_symbols(draft.graph).empty();
  backends::LowerOptions lowering = draft.lowering;
  draft.spent = can_spend(draft);
  if (draft.spent) {  // a model's weights are there once, as they were or as they are packed
    forget_constants(draft.graph);
    forget_constants(draft.canonical);
    lowering.spent = forget;
  }
  std::map<const ir::Value*, int32_t> writer;
  for (size_t k = 0; k < subgraphs.size(); ++k) {
    const plan::Subgraph& subgraph = subgraphs[k];
    program::Subprogram made =
        draft.backend(subgraph.device).lower(draft.subgraphs[k].graph, draft.assembler, lowering);
    // What it asks for besides the subgraph's inputs, and behind them: buffers whose shapes tell sizes, and nothing
    // else.
    const std::vector<int32_t> sizes = std::exchange(made.inputs, {});
    made.name = draft.subgraphs[k].name;
    made.device = subgraph.device;
    const bool may_lack_code = dynamic && draft.backend(subgraph.device).has_variants();
    const bool may_be_gone = draft.options.fallback && subgraph.device != draft.backends.front()->name();
    if (may_lack_code || may_be_gone) made.fallback = fallback_of(draft, subgraph);
    for (const ir::Node* node : subgraph.nodes) {
      for (std::string& symbol : ops::defined_symbols(node->call())) made.defines.push_back(std::move(symbol));
    }
    for (const ir::Value* input : subgraph.inputs) {
      made.inputs.push_back(draft.assembler.boundary(input->name()));
      if (auto at = writer.find(input); at != writer.end()) made.depends_on.push_back(at->second);
    }
    made.inputs.insert(made.inputs.end(), sizes.begin(), sizes.end());
    std::sort(made.depends_on.begin(), made.depends_on.end());
    made.depends_on.erase(std::unique(made.depends_on.begin(), made.depends_on.end()), made.depends_on.end());
    for (const ir::Value* output : subgraph.outputs) {
      made.outputs.push_back(draft.assembler.boundary(output->name()));
      writer[output] = static_cast<int32_t>(k);
    }
    program.subprograms.push_back(std::move(made));
  }
}

}  // namespace hetnn::pipeline
