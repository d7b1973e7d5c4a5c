// Takes every subgraph out of the model, as a graph of its own.
#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

std::vector<Subgraph> subgraphs_of(const ir::Graph& cut) {
  std::vector<Subgraph> out;
  for (const plan::Subgraph& subgraph : plan::subgraphs_of(cut))
    out.push_back({text(subgraph.device, ".", out.size()), subgraph.device, plan::extract(cut, subgraph)});
  return out;
}

void extract(Draft& draft) { draft.subgraphs = subgraphs_of(draft.graph); }

}  // namespace hetnn::pipeline
