// The order of a lane's elements: keys that compare as bits, sorted by their digits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "hetnn/ops/lanes.h"

namespace hetnn::ops {

/// An unsigned number that is less where `x` comes first: ascending, both zeros alike, NaN behind all numbers.
template <typename T>
auto ordered_bits(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
    // Without branches: signs of what is sorted cannot be foreseen.
    const Bits bits = std::bit_cast<Bits>(x + T(0));
    const Bits turned = bits ^ ((Bits{0} - (bits >> (8 * sizeof(T) - 1))) | kSign);
    return turned | (Bits{0} - static_cast<Bits>(x != x));
  } else if constexpr (std::is_same_v<T, bool>) {
    return static_cast<uint32_t>(x);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63);
  } else {
    return static_cast<uint64_t>(x);
  }
}

/// Keys of one lane with the places where their elements stood, to be ordered. Memory serves lane after lane.
template <typename Key>
class KeyOrder {
 public:
  struct Placed {
    Key key;
    Key place;
  };

  /// Of the memory that lanes of that size need, aligned to keys.
  static int64_t bytes(int64_t size) { return 2 * size * static_cast<int64_t>(sizeof(Placed)); }
  /// Unsupported where a place does not fit in a key: 2^32 elements of 32 bits.
  KeyOrder(int64_t size, std::byte* memory);

  int64_t place(int64_t rank) const { return static_cast<int64_t>(lane_[static_cast<size_t>(rank)].place); }

  /// Equals in the order that they had.
  void sort();
  /// After sort: whether any are equal.
  bool has_equals() const;
  /// Equals in the order in which the library's sort leaves them.
  void sort_as_library();
  /// The first `count` elements; which of equals are among them, and their order unless `sorted`, is the library's.
  void select(int64_t count, bool sorted);

 protected:
  std::span<Placed> lane_;

 private:
  void sort_by_digits();
  std::span<Placed> spare_;
};

extern template class KeyOrder<uint32_t>;
extern template class KeyOrder<uint64_t>;

/// The order of elements of type T.
template <typename T>
class LaneOrder : public KeyOrder<decltype(ordered_bits(T()))> {
 public:
  using Key = decltype(ordered_bits(T()));

  LaneOrder(int64_t size, bool descending, std::byte* memory)
      : KeyOrder<Key>(size, memory), flip_(descending ? static_cast<Key>(~Key{0}) : 0) {}

  void load(const T* from, int64_t step) {
    for (size_t k = 0; k < this->lane_.size(); ++k) {
      const auto key = static_cast<Key>(ordered_bits(from[static_cast<int64_t>(k) * step]) ^ flip_);
      this->lane_[k] = {key, static_cast<Key>(k)};
    }
  }

 private:
  Key flip_;
};

/// What sort and topk do with lanes.
struct Ordering {
  Lanes lanes;
  int64_t kept;     // of each lane; what sort keeps are all
  bool descending;  // the largest first
  bool selects;     // topk: whichever of equals the library's selection leaves
  bool strict;      // sort: equals keep their order; topk: what is kept is in order
};

/// Writes what is kept of lanes [begin, end), and where each element stood. `memory` has LaneOrder<T>::bytes.
template <typename T>
void order_lanes(const Ordering& o, int64_t begin, int64_t end, const T* from, T* to, int64_t* where,
                 std::byte* memory) {
  if (o.lanes.size == 0) return;
  LaneOrder<T> order(o.lanes.size, o.descending, memory);
  const int64_t step = o.lanes.step;
  for (int64_t lane = begin; lane < end; ++lane) {
    const int64_t first = lane / step * o.lanes.size * step + lane % step,
                  start = lane / step * o.kept * step + lane % step;
    order.load(from + first, step);
    if (o.selects) {
      order.select(o.kept, o.strict);
    } else {
      order.sort();
      if (!o.strict && order.has_equals()) {
        order.load(from + first, step);
        order.sort_as_library();
      }
    }
    for (int64_t k = 0; k < o.kept; ++k) {
      const int64_t source = order.place(k);
      to[start + k * step] = from[first + source * step];
      where[start + k * step] = source;
    }
  }
}

}  // namespace hetnn::ops
