// First fit in an order, and the fixed orders.
#include "hetnn/memory/order_fit.h"

#include <algorithm>
#include <numeric>

#include "hetnn/base/error.h"

namespace hetnn::memory {

constexpr size_t kMostPairs = size_t{1} << 26;

ConflictGraph::ConflictGraph(const std::vector<Buffer>& buffers, int64_t alignment_bytes, const Meetings& meetings) {
  if (alignment_bytes <= 0) throw InvalidModel(text("alignment must be at least 1; got ", alignment_bytes));
  const size_t n = buffers.size();
  sizes_.resize(n);
  neighbours_.resize(n);
  int64_t total_bytes = 0;
  for (size_t k = 0; k < n; ++k) {
    const Buffer& b = buffers[k];
    if (b.size_bytes < 0) throw InvalidModel(text("buffer ", k, ": size must be at least 0; got ", b.size_bytes));
    if (b.upper < b.lower) {
      throw InvalidModel(text("buffer ", k, ": its lifetime ends at ", b.upper, " before it begins at ", b.lower));
    }
    if (b.size_bytes > (int64_t{1} << 62) - alignment_bytes - total_bytes) {
      throw InvalidModel(
          text("buffer ", k, ": the sizes add up to more than 2^62 bytes. Check the size ", b.size_bytes));
    }
    sizes_[k] = (b.size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    total_bytes += sizes_[k];
  }
  // A sweep over lifetimes: the buffers alive when one begins are its earlier neighbours.
  std::vector<int> by_begin(n);
  std::iota(by_begin.begin(), by_begin.end(), 0);
  auto at = [&](int k) -> const Buffer& { return buffers[static_cast<size_t>(k)]; };
  std::stable_sort(by_begin.begin(), by_begin.end(), [&](int a, int b) { return at(a).lower < at(b).lower; });
  std::vector<int> alive;
  size_t pairs = 0;
  for (int k : by_begin) {
    if (at(k).size_bytes == 0 || at(k).lower == at(k).upper) continue;
    std::erase_if(alive, [&](int other) { return at(other).upper <= at(k).lower; });
    pairs += alive.size();
    if (pairs > kMostPairs) {
      throw DoesNotFit(
          text("more than ", kMostPairs, " pairs of the ", n, " buffers live at the same time. Give fewer."));
    }
    for (int other : alive) {
      neighbours_[static_cast<size_t>(k)].push_back(other);
      neighbours_[static_cast<size_t>(other)].push_back(k);
    }
    alive.push_back(k);
  }
  for (const auto& [a, b] : meetings) {
    neighbours_[static_cast<size_t>(a)].push_back(b);
    neighbours_[static_cast<size_t>(b)].push_back(a);
  }
}

Fit place_in_order(const ConflictGraph& graph, const std::vector<int>& order, int64_t give_up_bytes) {
  Fit fit;
  fit.offsets.assign(static_cast<size_t>(graph.size()), -1);
  std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end) of the placed neighbours
  for (int k : order) {
    taken.clear();
    for (int other : graph.neighbours(k)) {
      const int64_t begin = fit.offsets[static_cast<size_t>(other)];
      if (begin >= 0) taken.emplace_back(begin, begin + graph.sizes()[static_cast<size_t>(other)]);
    }
    std::sort(taken.begin(), taken.end());
    const int64_t size = graph.sizes()[static_cast<size_t>(k)];
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin >= offset + size) break;
      offset = std::max(offset, end);
    }
    fit.offsets[static_cast<size_t>(k)] = offset;
    fit.peak_bytes = std::max(fit.peak_bytes, offset + size);
    if (fit.peak_bytes > give_up_bytes) return fit;
  }
  return fit;
}

std::vector<std::vector<int>> greedy_orders(const std::vector<Buffer>& buffers, const ConflictGraph& graph) {
  const size_t n = buffers.size();
  std::vector<double> size(n), area(n), width(n), crowd(n);
  for (size_t k = 0; k < n; ++k) {
    size[k] = static_cast<double>(graph.sizes()[k]);
    width[k] = static_cast<double>(buffers[k].upper - buffers[k].lower);
    area[k] = size[k] * width[k];
    crowd[k] = size[k];
    for (int other : graph.neighbours(static_cast<int>(k))) {
      crowd[k] += static_cast<double>(graph.sizes()[static_cast<size_t>(other)]);
    }
  }
  std::vector<std::vector<int>> orders;
  for (const std::vector<double>* key : {&size, &area, &width, &crowd}) {
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
      return (*key)[i] != (*key)[j] ? (*key)[i] > (*key)[j] : size[i] > size[j];
    });
    orders.push_back(std::move(order));
  }
  return orders;
}

}  // namespace hetnn::memory
