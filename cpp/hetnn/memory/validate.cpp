// The pairwise check of an assignment. Shares no code with the solvers on purpose.
#include "hetnn/memory/validate.h"

#include "hetnn/base/error.h"

namespace hetnn::memory {

std::optional<std::string> validate(const std::vector<Buffer>& buffers, const std::vector<int64_t>& offsets,
                                    int64_t capacity_bytes, int64_t alignment_bytes) {
  if (offsets.size() != buffers.size()) {
    return text("there are ", buffers.size(), " buffers and ", offsets.size(), " offsets");
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& a = buffers[i];
    if (offsets[i] < 0) return text("buffer ", i, " begins at ", offsets[i], ", below 0");
    if (offsets[i] % alignment_bytes != 0) {
      return text("buffer ", i, " begins at ", offsets[i], ", not a multiple of ", alignment_bytes);
    }
    if (offsets[i] + a.size_bytes > capacity_bytes) {
      return text("buffer ", i, " ends at ", offsets[i] + a.size_bytes, ", above the capacity ", capacity_bytes);
    }
    for (size_t j = 0; j < i; ++j) {
      const Buffer& b = buffers[j];
      const bool together = a.lower < b.upper && b.lower < a.upper && a.lower < a.upper && b.lower < b.upper;
      if (together && offsets[i] < offsets[j] + b.size_bytes && offsets[j] < offsets[i] + a.size_bytes) {
        return text("buffers ", j, " and ", i, " live at the same time and overlap: [", offsets[j], ", ",
                    offsets[j] + b.size_bytes, ") and [", offsets[i], ", ", offsets[i] + a.size_bytes, ")");
      }
    }
  }
  return std::nullopt;
}

}  // namespace hetnn::memory
