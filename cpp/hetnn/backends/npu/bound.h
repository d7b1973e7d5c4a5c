// What no schedule can be faster than.
#pragma once

#include <cstdint>

#include "hetnn/backends/npu/network.h"
#include "hetnn/npu/spec.h"

namespace hetnn::backends::scheduling {

/// No schedule takes less: the larger of what each engine computes, every layer at its best tile, and of what the
/// memory hands over, constants, inputs and outputs once.
int64_t lower_bound_cycles(const npu::Spec& spec, const Network& network);

}  // namespace hetnn::backends::scheduling
