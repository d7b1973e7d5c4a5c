// Nodes that their device computes in one launch become one.
#include <algorithm>

#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

std::vector<report::FusionRow> fuse(ir::Graph& subgraph, const backends::Backend& backend,
                                    const backends::LowerOptions& options) {
  const Bindings hints = subgraph.hints();
  std::vector<report::FusionRow> rows = passes::fuse(subgraph, backend.fusing(options, hints));
  const auto launches = passes::chains_of(subgraph);
  for (report::FusionRow& row : rows) {
    const auto launch = std::ranges::find_if(launches, [&](const auto& l) { return l.front()->name() == row.into; });
    if (launch == launches.end()) continue;
    row.predicted_us_after = backend.launch_time_us(*launch, options, hints);
    if (!row.predicted_us_after) continue;
    row.predicted_us_before = 0;
    for (const ir::Node* node : *launch) *row.predicted_us_before += backend.time_us(*node, hints);
  }
  return rows;
}

void fuse(Draft& draft) {
  for (Subgraph& subgraph : draft.subgraphs) {
    const auto rows = fuse(subgraph.graph, draft.backend(subgraph.device), draft.lowering);
    draft.fusions.insert(draft.fusions.end(), rows.begin(), rows.end());
  }
}

}  // namespace hetnn::pipeline
