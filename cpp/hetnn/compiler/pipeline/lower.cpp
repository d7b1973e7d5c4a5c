// Lowers every subgraph into code for its device.
#include <algorithm>
#include <map>

#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/symbols.h"

namespace hetnn::pipeline {

void lower(Draft& draft) {
  program::Program& program = draft.assembler.program();
  const std::vector<plan::Subgraph> subgraphs = plan::subgraphs_of(draft.graph);
  std::map<const ir::Value*, int32_t> writer;
  for (size_t k = 0; k < subgraphs.size(); ++k) {
    const plan::Subgraph& subgraph = subgraphs[k];
    program::Subprogram made =
        draft.backend(subgraph.device).lower(draft.subgraphs[k].graph, draft.assembler, draft.lowering);
    made.name = draft.subgraphs[k].name;
    made.device = subgraph.device;
    for (const ir::Node* node : subgraph.nodes) {
      for (std::string& symbol : ops::defined_symbols(node->call())) made.defines.push_back(std::move(symbol));
    }
    for (const ir::Value* input : subgraph.inputs) {
      made.inputs.push_back(draft.assembler.boundary(input->name()));
      if (auto at = writer.find(input); at != writer.end()) made.depends_on.push_back(at->second);
    }
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
