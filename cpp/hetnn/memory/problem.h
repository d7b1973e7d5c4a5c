// Buffers with lifetimes that share one memory, and an assignment of offsets to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hetnn::memory {

/// `size_bytes` bytes that are in use during the half-open lifetime [lower, upper). Two buffers may share bytes when
/// their lifetimes are disjoint. A lifetime of zero length or a size of zero conflicts with nothing.
struct Buffer {
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t size_bytes = 0;

  bool operator==(const Buffer&) const = default;
};

/// True when both buffers hold bytes at some moment, so that they must not share any.
constexpr bool conflict(const Buffer& a, const Buffer& b) {
  return a.lower < b.upper && b.lower < a.upper && a.lower < a.upper && b.lower < b.upper && a.size_bytes > 0 &&
         b.size_bytes > 0;
}

/// Pairs of buffers, by index, that must not share bytes though their lifetimes are disjoint.
using Meetings = std::vector<std::pair<int, int>>;

/// offsets[k] is the first byte of buffer k; the peak is the end of the highest buffer.
struct Fit {
  std::vector<int64_t> offsets;
  int64_t peak_bytes = 0;
};

}  // namespace hetnn::memory
