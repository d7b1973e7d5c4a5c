// Takes every subgraph out of the model, as a graph of its own.
#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"
#include "hetnn/plan/blocks.h"

namespace hetnn {

std::vector<SubgraphOfPlan> subgraphs_of(const ir::Graph& planned) {
  std::vector<SubgraphOfPlan> out;
  for (const plan::Subgraph& subgraph : plan::subgraphs_of(planned))
    out.push_back({text(subgraph.device, ".", out.size()), subgraph.device, plan::extract(planned, subgraph)});
  return out;
}

namespace pipeline {

void extract(Draft& draft) {
  draft.subgraphs = subgraphs_of(draft.graph);
  for (size_t k = 0; k < draft.subgraphs.size(); ++k)
    if (draft.blocks[k] > 1) draft.subgraphs[k].graph = plan::block_of(draft.subgraphs[k].graph, draft.blocks[k]);
}

}  // namespace pipeline

}  // namespace hetnn
