// Runs a reference subprogram by an interpreter that the process provides: the runtime itself knows no operator.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "hetnn/base/tensor.h"
#include "hetnn/program/program.h"
#include "hetnn/runtime/bound_program.h"

namespace hetnn::runtime {

/// The outputs of a graph, given as IR text, for its inputs in order.
using Interpreter = std::function<std::vector<Tensor>(std::string_view graph, std::span<const Tensor> inputs)>;

/// Reads the subprogram's inputs from their buffers and writes its outputs to theirs. Unsupported when there is no
/// interpreter; InvalidModel when it returns other types than the buffers hold.
void run_reference(const program::Program& program, const program::Subprogram& subprogram,
                   const std::vector<std::byte*>& addresses, const std::vector<BoundBuffer>& buffers,
                   const Interpreter* interpreter);

}  // namespace hetnn::runtime
