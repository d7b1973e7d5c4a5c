// A set of small numbers that gives its lowest away. Internal to the partitioner.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hetnn::plan {

/// Numbers from 0 to below a limit as bits, and above them a bit for each word that is not empty, up to one word: a
/// million numbers take 128 KiB and four steps, where a heap of them misses the cache at every level.
class RankSet {
 public:
  explicit RankSet(int32_t limit) {
    size_t words = static_cast<size_t>(limit);
    do {
      words = (words + 63) / 64;
      levels_.emplace_back(words, 0);
    } while (words > 1);
  }

  bool empty() const { return levels_.back().empty() || levels_.back().front() == 0; }

  void insert(int32_t rank) {
    auto k = static_cast<size_t>(rank);
    for (std::vector<uint64_t>& level : levels_) {
      const bool was_empty = level[k / 64] == 0;
      level[k / 64] |= uint64_t{1} << (k % 64);
      if (!was_empty) return;
      k /= 64;
    }
  }

  /// The set must not be empty.
  int32_t lowest() const {
    size_t k = 0;
    for (size_t level = levels_.size(); level-- > 0;)
      k = k * 64 + static_cast<size_t>(std::countr_zero(levels_[level][k]));
    return static_cast<int32_t>(k);
  }

  void erase(int32_t rank) {
    auto k = static_cast<size_t>(rank);
    for (std::vector<uint64_t>& level : levels_) {
      level[k / 64] &= ~(uint64_t{1} << (k % 64));
      if (level[k / 64] != 0) return;
      k /= 64;
    }
  }

 private:
  /// Lowest level first.
  std::vector<std::vector<uint64_t>> levels_;
};

}  // namespace hetnn::plan
