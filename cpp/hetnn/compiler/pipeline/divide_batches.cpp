// Cuts subgraphs further where a batch runs faster in blocks of its entries.
#include "hetnn/compiler/pipeline.h"
#include "hetnn/plan/blocks.h"

namespace hetnn::pipeline {

void divide_batches(Draft& draft) {
  int number = 0;
  for (const plan::Subgraph& subgraph : plan::subgraphs_of(draft.graph)) {
    const target::Device& device = draft.backend(subgraph.device);
    const std::vector<plan::Stretch> stretches = device.runs_in_blocks()
                                                     ? plan::stretches_of(draft.graph, subgraph, device)
                                                     : std::vector<plan::Stretch>{{0, subgraph.nodes.size(), 1}};
    for (const plan::Stretch& stretch : stretches) {
      for (size_t k = stretch.begin; k < stretch.end; ++k) subgraph.nodes[k]->subgraph = number;
      draft.blocks.push_back(stretch.blocks);
      ++number;
    }
  }
}

}  // namespace hetnn::pipeline
