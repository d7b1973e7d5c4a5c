// Why a call runs by its operator's meaning.
#pragma once

#include <string>
#include <vector>

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// A sentence for each variant of the call's operator that refuses it on such operands. None where there is no variant,
/// or where one serves it, which whoever compiled the call did not want.
std::vector<std::string> refusals_of(const ops::Call& call, std::span<const TensorView> inputs,
                                     std::span<const TensorView> outputs);

}  // namespace hetnn::kernels
