// Every output is a value of its own, so that values may bear the outputs' names.
#include "hetnn/base/error.h"
#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

void name_outputs(Draft& draft) {
  for (const ir::Value* output : draft.graph.outputs()) {
    HETNN_ASSERT(output->producer() && !output->producer()->is_constant(), "the output ", output->name(),
                 " is computed by no node");
  }
}

}  // namespace hetnn::pipeline
