// One subprogram of a program as a program of its own, for a device that stands elsewhere.
#pragma once

#include <cstddef>

#include "hetnn/program/program.h"

namespace hetnn::runtime {

/// The subprogram's inputs and outputs are the program's, dense; of the weights it has what its code names. Unsupported
/// for code of the general processor, whose parts run where the program does, and for sizes that are no input's.
program::Program slice(const program::Program& whole, size_t subprogram);

}  // namespace hetnn::runtime
