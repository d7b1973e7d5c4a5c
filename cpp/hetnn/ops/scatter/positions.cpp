// All indices at once, and one by one only where one is outside.
#include "hetnn/ops/scatter/positions.h"

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

// An index is within the bounds where neither distance from them is negative.
template <typename T>
bool all_within(std::span<const T> indices, int64_t least, int64_t most) {
  uint64_t signs = 0;
  for (const T index : indices) {
    const auto at = static_cast<uint64_t>(static_cast<int64_t>(index));
    signs |= (at - static_cast<uint64_t>(least)) | (static_cast<uint64_t>(most) - at);
  }
  return static_cast<int64_t>(signs) >= 0;
}

}  // namespace

void check_positions(const Call& call, int constraint, const View& indices, int64_t size, bool from_end) {
  if (!indices.data) return;
  const int64_t least = from_end ? -size : 0;
  const auto check = [&](const auto values) {
    if (all_within(values, least, size - 1)) return;
    for (const int64_t at : values) {
      if (at >= least && at < size) continue;
      fail(call, text(call.op->name, "_c", constraint),
           text("index ", at, " is outside an axis of ", size, "; it must be in [", least, ",", size,
                "). Check the indices."));
    }
  };
  indices.dtype == DType::i64 ? check(indices.values<int64_t>()) : check(indices.values<int32_t>());
}

}  // namespace hetnn::ops
