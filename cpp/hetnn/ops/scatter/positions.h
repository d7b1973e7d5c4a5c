// Indices along an axis: what is within it, and what is not.
#pragma once

#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// Fails with the operator's constraint of that number for an index, i64 or i32, outside [0, size), or [-size, size)
/// where negative ones count `from_end`.
void check_positions(const Call& call, int constraint, const View& indices, int64_t size, bool from_end);

}  // namespace hetnn::ops
