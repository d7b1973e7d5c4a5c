// What a program has inside: its kernels, and values that it can return because it has a buffer for them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hetnn/program/program.h"

namespace hetnn::runtime {

/// Names of the values that lie in a buffer of their own while the program runs, inputs and outputs included; not those
/// that are computed within a kernel or an accelerator's subprogram.
std::vector<std::string> exposable(const program::Program& program);

/// The program with these values as further outputs, which bear their names, and nothing else changed: its subprograms
/// are the same, and one behind them copies. InvalidModel for a name that is not exposable.
program::Program exposed(const program::Program& program, const std::vector<std::string>& names);

/// Node and kernel of every command of the general processor, in order; `meaning of OP` where no kernel serves.
std::vector<std::pair<std::string, std::string>> kernels_of(const program::Program& program);

}  // namespace hetnn::runtime
