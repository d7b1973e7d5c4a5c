// Lowers the bodies of loops into programs, which the loops name.
#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/rewriter.h"

namespace hetnn::pipeline {

void lower_bodies(Draft& draft) {
  for (Subgraph& subgraph : draft.subgraphs) {
    for (ir::Node* node : subgraph.graph.nodes()) {
      const auto body = draft.bodies.find(node->name());
      if (body == draft.bodies.end()) continue;
      Draft& inner = *body->second;
      inner.number = draft.assembler.add_body(inner.assembler, [&] { run_passes(inner, ir::Stage::planned); });
      ir::Rewriter(subgraph.graph).set_attr(node, "program", Dim(inner.number));
    }
  }
}

}  // namespace hetnn::pipeline
