// One way to say each thing; what is computed from constants is computed now.
#include "hetnn/passes/canonicalize.h"

#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

void canonicalize(Draft& draft) {
  for (const passes::Firing& firing : passes::canonicalize(draft.graph, draft.options.deterministic))
    if (firing.steps_apart != 0) draft.rounded_otherwise.push_back(firing);
}

}  // namespace hetnn::pipeline
