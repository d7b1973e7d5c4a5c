// Takes every subgraph out of the model, as a graph of its own.
#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

void extract(Draft& draft) {
  for (const plan::Subgraph& subgraph : plan::subgraphs_of(draft.graph)) {
    draft.subgraphs.push_back(
        {text(subgraph.device, ".", draft.subgraphs.size()), subgraph.device, plan::extract(draft.graph, subgraph)});
  }
}

}  // namespace hetnn::pipeline
