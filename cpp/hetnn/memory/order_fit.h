// Places buffers one by one in a given order, each at the lowest free offset: what greedy and climbing share.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hetnn/memory/problem.h"

namespace hetnn::memory {

/// Buffers with sizes rounded up to the alignment, and for each the list of those it conflicts with.
class ConflictGraph {
 public:
  /// `meetings` are pairs that conflict though their lifetimes are apart. Throws InvalidModel on sizes or lifetimes
  /// that make no sense, DoesNotFit for more than 2^26 pairs.
  ConflictGraph(const std::vector<Buffer>& buffers, int64_t alignment_bytes, const Meetings& meetings = {});

  int size() const { return static_cast<int>(sizes_.size()); }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  const std::vector<int>& neighbours(int buffer) const { return neighbours_[static_cast<size_t>(buffer)]; }

 private:
  std::vector<int64_t> sizes_;
  std::vector<std::vector<int>> neighbours_;
};

/// First fit in `order`. Stops early and returns a peak above `give_up_bytes` as soon as one buffer ends above it.
Fit place_in_order(const ConflictGraph& graph, const std::vector<int>& order, int64_t give_up_bytes = INT64_MAX);

/// The best of the greedy orders, of which `stop` may leave out all but the first; none follows one that reaches
/// `bound_bytes`.
Fit fit_greedy(const std::vector<Buffer>& buffers, const ConflictGraph& graph, int64_t bound_bytes,
               const std::function<bool()>& stop);

/// The fixed greedy orders, most useful first.
std::vector<std::vector<int>> greedy_orders(const std::vector<Buffer>& buffers, const ConflictGraph& graph);

}  // namespace hetnn::memory
