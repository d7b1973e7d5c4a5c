// The search: candidates bottom-up, bounds by time section, independent parts solved one by one.
#include "hetnn/memory/exact.h"

#include <algorithm>
#include <map>
#include <span>

namespace hetnn::memory {
namespace {

constexpr int64_t kNever = INT64_MAX / 4;
// The search goes as deep as there are buffers.
constexpr size_t kMostBuffers = 4096;
constexpr size_t kWorkBetweenStops = 1 << 14;

class Search {
 public:
  Search(const std::vector<Buffer>& buffers, const ConflictGraph& graph, const std::vector<int>& rank,
         int64_t capacity_bytes, int64_t max_nodes, Blame& blame, const std::function<bool()>& stop)
      : graph_(graph), rank_(rank), capacity_(capacity_bytes), max_nodes_(max_nodes), blame_(blame), stop_(stop) {
    std::map<int64_t, int> section_of;
    for (const Buffer& b : buffers) section_of[b.lower] = section_of[b.upper] = 0;
    int count = 0;
    for (auto& [moment, index] : section_of) index = count++;
    const size_t n = buffers.size();
    begin_.resize(n), end_.resize(n), support_.assign(n, 0), offset_.assign(n, -1), earliest_.assign(n, 0);
    total_.assign(static_cast<size_t>(count), 0), floor_.assign(static_cast<size_t>(count), 0);
    std::vector<int> all;
    for (size_t k = 0; k < n; ++k) {
      begin_[k] = section_of[buffers[k].lower];
      end_[k] = section_of[buffers[k].upper];
      if (begin_[k] == end_[k] || buffers[k].size_bytes == 0) {
        offset_[k] = 0;
        continue;
      }
      all.push_back(static_cast<int>(k));
      for (int s = begin_[k]; s < end_[k]; ++s) total_[static_cast<size_t>(s)] += size(static_cast<int>(k));
    }
    std::sort(all.begin(), all.end(),
              [&](int a, int b) { return std::pair(begin(a), end(a)) < std::pair(begin(b), end(b)); });
    all_ = std::move(all);
  }

  ExactResult run() {
    ExactResult result;
    const bool found = solve_parts(all_, 0, -1);
    result.nodes = nodes_;
    if (found) {
      result.outcome = ExactOutcome::found;
      result.offsets = offset_;
    } else {
      result.outcome = stopped_ ? ExactOutcome::gave_up : ExactOutcome::infeasible;
    }
    return result;
  }

 private:
  int64_t size(int k) const { return graph_.sizes()[static_cast<size_t>(k)]; }
  int begin(int k) const { return begin_[static_cast<size_t>(k)]; }
  int end(int k) const { return end_[static_cast<size_t>(k)]; }
  int64_t& offset(int k) { return offset_[static_cast<size_t>(k)]; }
  int64_t& support(int k) { return support_[static_cast<size_t>(k)]; }
  int64_t& earliest(int k) { return earliest_[static_cast<size_t>(k)]; }
  int rank(int k) const { return rank_[static_cast<size_t>(k)]; }

  // Splits `buffers` (sorted by begin) where no lifetime spans a moment, and solves the parts independently. Everything
  // placed later lies at (offset, rank) above (floor, floor_rank).
  bool solve_parts(const std::vector<int>& buffers, int64_t floor, int floor_rank) {
    std::vector<std::vector<int>> parts;
    int reach = -1;
    for (int k : buffers) {
      if (begin(k) >= reach) parts.emplace_back();
      parts.back().push_back(k);
      reach = std::max(reach, end(k));
    }
    // A part that is tight fails soonest, so it goes first.
    if (parts.size() > 1) {
      std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    }
    std::vector<int64_t> supports;  // of the parts solved so far, to be restored when a later one fails
    for (size_t p = 0; p < parts.size(); ++p) {
      if (p + 1 < parts.size()) {
        for (int k : parts[p]) supports.push_back(support(k));
      }
      if (solve(parts[p], floor, floor_rank)) continue;
      size_t at = 0;
      for (size_t q = 0; q < p; ++q) {
        for (int k : parts[q]) {
          support(k) = supports[at++];
          offset(k) = -1;
          for (int s = begin(k); s < end(k); ++s) total_[static_cast<size_t>(s)] += size(k);
        }
      }
      return false;
    }
    return true;
  }

  // Lower bounds of the offsets of the unplaced buffers of one part; false when one cannot end below the capacity.
  bool bound(const std::vector<int>& part, int64_t floor, int floor_rank) {
    // A buffer whose support lies below the floor has to rest on a buffer that is still to come.
    for (int k : part) {
      const bool reachable = support(k) > floor || (support(k) == floor && rank(k) > floor_rank);
      earliest(k) = reachable ? support(k) : kNever;
    }
    for (int k : part) {
      if (earliest(k) != kNever) continue;
      int64_t rest = kNever;
      for (int other : graph_.neighbours(k)) {
        if (offset(other) < 0) rest = std::min(rest, std::max(support(other), floor) + size(other));
      }
      earliest(k) = -rest;  // marked, so that the loop above reads supports only
    }
    int first = INT32_MAX, last = 0;
    for (int k : part) {
      if (earliest(k) < 0) earliest(k) = -earliest(k);
      if (earliest(k) + size(k) > capacity_) {
        blame_.add(k);
        return false;
      }
      first = std::min(first, begin(k));
      last = std::max(last, end(k));
    }
    std::fill(floor_.begin() + first, floor_.begin() + last, kNever);
    for (int k : part) {
      const int64_t at = earliest(k);
      for (int s = begin(k); s < end(k); ++s) {
        int64_t& low = floor_[static_cast<size_t>(s)];
        low = std::min(low, at);
      }
    }
    for (int s = first; s < last; ++s) {
      const auto at = static_cast<size_t>(s);
      if (floor_[at] == kNever || floor_[at] + total_[at] <= capacity_) continue;
      for (int k : part) {
        if (begin(k) <= s && s < end(k)) blame_.add(k);
      }
      return false;
    }
    return true;
  }

  bool solve(const std::vector<int>& part, int64_t floor, int floor_rank) {
    if (part.empty()) return true;
    work_ += part.size();
    if (++nodes_ > max_nodes_ || (work_ > kWorkBetweenStops && stop_())) stopped_ = true;
    if (work_ > kWorkBetweenStops) work_ = 0;
    if (stopped_ || !bound(part, floor, floor_rank)) return false;

    // A buffer that could end at or below a candidate's offset would be stranded above it; the form has it lower.
    int64_t lowest_end = kNever;
    for (int k : part) lowest_end = std::min(lowest_end, support(k) + size(k));
    std::vector<int> candidates;
    for (int k : part) {
      if (support(k) == earliest(k) && support(k) < lowest_end) candidates.push_back(k);
    }
    std::sort(candidates.begin(), candidates.end(),
              [&](int a, int b) { return std::pair(support(a), rank(a)) < std::pair(support(b), rank(b)); });
    std::vector<int> rest(part.size() - 1);
    std::vector<std::pair<int, int64_t>> trail;
    for (int k : candidates) {
      const int64_t at = support(k), top = at + size(k);
      offset(k) = at;
      for (int s = begin(k); s < end(k); ++s) total_[static_cast<size_t>(s)] -= size(k);
      trail.clear();
      for (int other : graph_.neighbours(k)) {
        if (offset(other) >= 0) continue;
        if (support(other) >= top) continue;
        trail.emplace_back(other, support(other));
        support(other) = top;
      }
      std::copy_if(part.begin(), part.end(), rest.begin(), [&](int other) { return other != k; });
      if (solve_parts(rest, at, rank(k))) return true;
      for (auto it = trail.rbegin(); it != trail.rend(); ++it) support(it->first) = it->second;
      for (int s = begin(k); s < end(k); ++s) total_[static_cast<size_t>(s)] += size(k);
      offset(k) = -1;
      if (stopped_) return false;
    }
    return false;
  }

  const ConflictGraph& graph_;
  const std::vector<int>& rank_;
  const int64_t capacity_;
  const int64_t max_nodes_;
  Blame& blame_;
  const std::function<bool()>& stop_;
  std::vector<int> all_;
  std::vector<int> begin_, end_;   // sections of each buffer
  std::vector<int64_t> support_;   // the highest end of placed neighbours
  std::vector<int64_t> earliest_;  // a lower bound of the offset, given the floor
  std::vector<int64_t> offset_;    // -1: not placed
  std::vector<int64_t> total_;     // bytes still to be placed in each section
  std::vector<int64_t> floor_;     // scratch of bound()
  int64_t nodes_ = 0;
  size_t work_ = 0;  // since stop_ was asked last: buffers looked at
  bool stopped_ = false;
};

}  // namespace

ExactResult search_exact(const std::vector<Buffer>& buffers, const ConflictGraph& graph, const std::vector<int>& rank,
                         int64_t capacity_bytes, int64_t max_nodes, Blame& blame, const std::function<bool()>& stop) {
  if (buffers.size() > kMostBuffers) return {};
  return Search(buffers, graph, rank, capacity_bytes, max_nodes, blame, stop).run();
}

}  // namespace hetnn::memory
