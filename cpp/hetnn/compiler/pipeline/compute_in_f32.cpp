// Nodes on narrow values compute in f32 between conversions, on devices without that arithmetic.
#include "hetnn/passes/compute_in_f32.h"

#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

void compute_in_f32(ir::Graph& subgraph, const backends::Backend& backend) {
  if (!backend.computes_narrow()) passes::compute_in_f32(subgraph);
}

void compute_in_f32(Draft& draft) {
  for (Subgraph& subgraph : draft.subgraphs) compute_in_f32(subgraph.graph, draft.backend(subgraph.device));
}

}  // namespace hetnn::pipeline
