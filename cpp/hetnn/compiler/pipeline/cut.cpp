// Cuts the placed graph into subgraphs, each a visit of one device.
#include "hetnn/plan/cut.h"

#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

void cut(Draft& draft) { plan::apply(draft.plan, draft.graph); }

}  // namespace hetnn::pipeline
