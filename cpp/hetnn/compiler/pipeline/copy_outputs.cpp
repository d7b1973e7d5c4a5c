// A model may return an input, a constant or one value twice. A program writes every output once, into the caller's
// memory, so such an output becomes a copy.
#include <set>

#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/rewriter.h"

namespace hetnn::pipeline {

void copy_outputs(Draft& draft) {
  ir::Graph& graph = draft.graph;
  std::set<const ir::Value*> seen;
  ir::Rewriter rewriter(graph);
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    ir::Value* output = graph.outputs()[k];
    const bool written = output->producer() && !output->producer()->is_constant();
    if (!seen.insert(output).second || !written) rewriter.set_output(k, rewriter.add(ops::kIdentity, {output}));
  }
}

}  // namespace hetnn::pipeline
