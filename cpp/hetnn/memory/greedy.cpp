// The bound from below and the best of the fixed greedy orders.
#include <algorithm>
#include <map>

#include "hetnn/memory/fit.h"
#include "hetnn/memory/order_fit.h"

namespace hetnn::memory {

int64_t lower_bound_bytes(const std::vector<Buffer>& buffers, int64_t alignment_bytes) {
  std::map<int64_t, int64_t> change;  // moment -> change of the bytes alive
  for (const Buffer& b : buffers) {
    const int64_t size = (b.size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    if (b.lower >= b.upper) continue;
    change[b.lower] += size;
    change[b.upper] -= size;
  }
  int64_t alive_bytes = 0, most_bytes = 0;
  for (const auto& [moment, delta] : change) most_bytes = std::max(most_bytes, alive_bytes += delta);
  return most_bytes;
}

Fit fit_greedy(const std::vector<Buffer>& buffers, int64_t alignment_bytes, const Meetings& meetings) {
  const ConflictGraph graph(buffers, alignment_bytes, meetings);
  return fit_greedy(buffers, graph, lower_bound_bytes(buffers, alignment_bytes), [] { return false; });
}

Fit fit_greedy(const std::vector<Buffer>& buffers, const ConflictGraph& graph, int64_t bound_bytes,
               const std::function<bool()>& stop) {
  Fit best;
  bool first = true;
  for (const std::vector<int>& order : greedy_orders(buffers, graph)) {
    Fit fit = place_in_order(graph, order, first ? INT64_MAX : best.peak_bytes - 1);
    if (first || fit.peak_bytes < best.peak_bytes) best = std::move(fit);
    first = false;
    if (best.peak_bytes <= bound_bytes || stop()) break;
  }
  return best;
}

}  // namespace hetnn::memory
