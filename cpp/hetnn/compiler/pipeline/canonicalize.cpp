// One way to say each thing; what is computed from constants is computed now.
#include "hetnn/passes/canonicalize.h"

#include "hetnn/compiler/pipeline.h"

namespace hetnn::pipeline {

void canonicalize(Draft& draft) { passes::canonicalize(draft.graph); }

}  // namespace hetnn::pipeline
