// Indices along an axis: what is within it, and what is not.
#pragma once

#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// Fails with the operator's constraint of that number for an index, i64 or i32, outside [0, size), or [-size, size)
/// where the call's attribute `from_end` says that negative ones count from the end.
void check_positions(const Call& call, int constraint, const View& indices, int64_t size);

}  // namespace hetnn::ops
