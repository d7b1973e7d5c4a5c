// One way to say each thing; what is computed from constants is computed now.
#include "hetnn/passes/canonicalize.h"

#include "hetnn/compiler/pipeline.h"
#include "hetnn/passes/legalize.h"

namespace hetnn::pipeline {

void canonicalize(Draft& draft) {
  // An accelerator that gives reals may have the layers as they are.
  const bool real_sums = !passes::accelerators(draft.target, {}).gives(DType::f32);
  for (const passes::Firing& firing :
       passes::canonicalize(draft.graph, {.deterministic = draft.options.deterministic, .real_sums = real_sums}))
    if (firing.steps_apart != 0) draft.rounded_otherwise.push_back(firing);
}

}  // namespace hetnn::pipeline
