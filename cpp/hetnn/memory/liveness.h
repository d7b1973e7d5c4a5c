// Which buffers hold values at the same time, when work is ordered in part only.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/memory/problem.h"

namespace hetnn::memory {

/// Steps of which some wait for others. Every step is a chain of moments; a buffer is used at moments.
class Liveness {
 public:
  /// `waits_for[k]` lists steps before k.
  explicit Liveness(const std::vector<std::vector<int>>& waits_for);

  /// A buffer is used at a moment of a step. Steps come in their order, and the moments of each in theirs.
  void use(int buffer, int step, int64_t moment);

  /// Whether step `a` has ended before step `b` begins, whatever runs at once.
  bool before(int a, int b) const { return before_[static_cast<size_t>(b)][static_cast<size_t>(a)]; }

  /// Whether every two steps are ordered.
  bool total() const { return total_; }

  /// The lifetime of a buffer when the steps run one after another: [first use, last use].
  Buffer lifetime(int buffer, int64_t size_bytes) const;

  /// Pairs of `buffers`, by their places in the list, that are apart when the steps run one after another and yet may
  /// hold values at the same time: neither has all its uses before those of the other. None when the order is total.
  Meetings meetings(const std::vector<int>& buffers) const;

 private:
  struct Use {
    int step;
    int64_t first, last;  // moments
  };
  bool ends_before(int a, int b) const;

  std::vector<std::vector<bool>> before_;
  bool total_ = true;
  std::vector<std::vector<Use>> uses_;  // of each buffer, by step
};

}  // namespace hetnn::memory
