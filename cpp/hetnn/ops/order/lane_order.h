// The order of a lane's elements: keys that compare as bits, sorted by their digits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

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

/// Keys of one lane with the places where their elements stood, to be ordered. Buffers serve lane after lane.
template <typename Key>
class KeyOrder {
 public:
  struct Placed {
    Key key;
    Key place;
  };

  /// Unsupported where a place does not fit in a key: 2^32 elements of 32 bits.
  explicit KeyOrder(int64_t size);

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
  std::vector<Placed> lane_;

 private:
  void sort_by_digits();
  std::vector<Placed> spare_;
};

extern template class KeyOrder<uint32_t>;
extern template class KeyOrder<uint64_t>;

/// The order of elements of type T.
template <typename T>
class LaneOrder : public KeyOrder<decltype(ordered_bits(T()))> {
 public:
  using Key = decltype(ordered_bits(T()));

  LaneOrder(int64_t size, bool descending) : KeyOrder<Key>(size), flip_(descending ? static_cast<Key>(~Key{0}) : 0) {}

  void load(const T* from, int64_t step) {
    for (size_t k = 0; k < this->lane_.size(); ++k) {
      const auto key = static_cast<Key>(ordered_bits(from[static_cast<int64_t>(k) * step]) ^ flip_);
      this->lane_[k] = {key, static_cast<Key>(k)};
    }
  }

 private:
  Key flip_;
};

}  // namespace hetnn::ops
