// Sorting by digits, and selecting.
#include "hetnn/ops/order/lane_order.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "hetnn/base/error.h"

namespace hetnn::ops {
namespace {

constexpr auto kByKey = [](const auto& a, const auto& b) { return a.key < b.key; };

template <typename Key>
size_t digit(Key key, size_t number) {
  return static_cast<size_t>(key >> (8 * number)) & 255;
}

}  // namespace

template <typename Key>
KeyOrder<Key>::KeyOrder(int64_t size, std::byte* memory)
    : lane_(reinterpret_cast<Placed*>(memory), static_cast<size_t>(size)), spare_(lane_.data() + size, lane_.size()) {
  if (static_cast<uint64_t>(size) > std::numeric_limits<Key>::max())
    throw Unsupported(text("a lane of ", size, " elements cannot be ordered; at most 2^32 - 1. Split it."));
}

template <typename Key>
void KeyOrder<Key>::sort() {
  constexpr size_t kFewer = 64;  // than the tables of digits pay for
  if (lane_.size() >= kFewer) return sort_by_digits();
  std::sort(lane_.begin(), lane_.end(),
            [](const Placed& a, const Placed& b) { return a.key < b.key || (a.key == b.key && a.place < b.place); });
}

template <typename Key>
bool KeyOrder<Key>::has_equals() const {
  const auto equal = [](const Placed& a, const Placed& b) { return a.key == b.key; };
  return std::adjacent_find(lane_.begin(), lane_.end(), equal) != lane_.end();
}

template <typename Key>
void KeyOrder<Key>::sort_as_library() {
  std::sort(lane_.begin(), lane_.end(), kByKey);
}

template <typename Key>
void KeyOrder<Key>::select(int64_t count, bool sorted) {
  // So few of so many pay for no partition.
  if (count * 64 <= static_cast<int64_t>(lane_.size())) {
    std::partial_sort(lane_.begin(), lane_.begin() + count, lane_.end(), kByKey);
    return;
  }
  std::nth_element(lane_.begin(), lane_.begin() + count - 1, lane_.end(), kByKey);
  if (sorted) std::sort(lane_.begin(), lane_.begin() + count - 1, kByKey);
}

// From the least digit up (Knuth, The Art of Computer Programming 3, 5.2.5); digits that all have in common are left
// out.
template <typename Key>
void KeyOrder<Key>::sort_by_digits() {
  constexpr size_t kDigits = sizeof(Key);
  std::array<std::array<size_t, 256>, kDigits> counts{};
  for (const Placed& each : lane_) {
    for (size_t d = 0; d < kDigits; ++d) ++counts[d][digit(each.key, d)];
  }
  for (size_t d = 0; d < kDigits; ++d) {
    if (counts[d][digit(lane_[0].key, d)] == lane_.size()) continue;
    size_t start = 0;
    for (size_t& count : counts[d]) start += std::exchange(count, start);
    for (const Placed& each : lane_) spare_[counts[d][digit(each.key, d)]++] = each;
    std::swap(lane_, spare_);
  }
}

template class KeyOrder<uint32_t>;
template class KeyOrder<uint64_t>;

}  // namespace hetnn::ops
