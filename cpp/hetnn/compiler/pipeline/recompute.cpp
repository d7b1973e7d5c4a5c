// What would be kept for gradients beyond the budget of the option `checkpoint` is computed again.
#include "hetnn/passes/recompute.h"

#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

void recompute(Draft& draft) {
  if (!draft.options.checkpoint) return;
  const backends::Backend& general = *draft.backends.front();
  const Bindings hints = draft.graph.hints();
  passes::recompute(draft.graph, *draft.options.checkpoint,
                    [&](const ir::Node& node) { return general.time_us(node, hints); });
}

}  // namespace hetnn::pipeline
