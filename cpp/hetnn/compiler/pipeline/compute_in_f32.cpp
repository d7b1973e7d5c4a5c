// Nodes on narrow values compute in f32 between conversions, on devices without that arithmetic.
#include "hetnn/passes/compute_in_f32.h"

#include "hetnn/compiler/pipeline.h"
#include "hetnn/passes/combine.h"

namespace hetnn::pipeline {

void compute_in_f32(ir::Graph& subgraph, const backends::Backend& backend) {
  const Bindings hints = subgraph.hints();
  passes::compute_in_f32(subgraph, backend.narrow_arithmetic(hints));
}

void compute_in_f32(Draft& draft) {
  for (Subgraph& subgraph : draft.subgraphs) {
    const backends::Backend& backend = draft.backend(subgraph.device);
    const passes::FuseOptions fusing = backend.fusing(draft.lowering, subgraph.graph.hints());
    // Between conversions the operations of a sum would no longer stand behind each other.
    if (fusing.enabled && fusing.combines) passes::combine_narrow(subgraph.graph);
    compute_in_f32(subgraph.graph, backend);
  }
}

}  // namespace hetnn::pipeline
