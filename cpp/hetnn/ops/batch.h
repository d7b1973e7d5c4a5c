// Calls that compute each entry of a batch, an index along axis 0, from that entry alone.
#pragma once

#include <span>

#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

/// Which inputs hold a batch: an entry at each index along axis 0. One for every input.
using Batched = std::span<const bool>;

/// Whether entry n of every output follows from entry n of the inputs that are batched and from the others whole, the
/// same way however many entries there are.
bool keeps_batch(const Call& call, Batched batched);

/// The attributes of the call where its results have so many entries.
Attrs attrs_of_entries(const Call& call, const Dim& entries);

// What operators answer by (OpDef::keeps_batch). Input 0 alone holds the batch, and has other axes:
bool keeps_batch_of_first(const Call& call, Batched batched);
/// but not along the attribute `axis`,
bool keeps_batch_beside_axis(const Call& call, Batched batched);
/// the attribute `axes`, which reductions have,
bool keeps_batch_beside_axes(const Call& call, Batched batched);
/// or the last `axes` of x.
bool keeps_batch_before_axes(const Call& call, Batched batched);
/// Any input of the result's rank may.
bool keeps_batch_of_all(const Call& call, Batched batched);

}  // namespace hetnn::ops
