// What an operator makes of every byte, or of every two: its meaning as a table.
#pragma once

#include <vector>

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// Results of the call's operator for all i8 that its one input may hold, in order from -128; of two inputs for all
/// pairs, the second running faster. By the meaning itself, whatever rounding the call names. Scales are the params
/// NAME.scales and NAME.zeros, one each.
std::vector<int8_t> table_of(const KernelCall& call);

/// Why there is no such table: an operand or the result has no scale, or several.
Refusal refuse_scales(const KernelCall& call);

}  // namespace hetnn::kernels
