// A device of a kind of its own, as a test adds it: it computes by the cpu's code and counts its own time.
#pragma once

#include "hetnn/runtime/executor.h"

namespace hetnn::runtime {

std::unique_ptr<const Executor> load_dsp(const Load& load);

}  // namespace hetnn::runtime
