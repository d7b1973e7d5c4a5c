// Reachability between steps, and buffers whose uses it does not keep apart.
#include "hetnn/memory/liveness.h"

#include <algorithm>

namespace hetnn::memory {

Liveness::Liveness(const std::vector<std::vector<int>>& waits_for) {
  const size_t n = waits_for.size();
  before_.assign(n, std::vector<bool>(n));
  for (size_t k = 0; k < n; ++k) {
    for (const int earlier : waits_for[k]) {
      const auto e = static_cast<size_t>(earlier);
      before_[k][e] = true;
      for (size_t j = 0; j < e; ++j) {
        if (before_[e][j]) before_[k][j] = true;
      }
    }
    total_ = total_ && (k == 0 || before_[k][k - 1]);
  }
}

void Liveness::use(int buffer, int step, int64_t moment) {
  if (uses_.size() <= static_cast<size_t>(buffer)) uses_.resize(static_cast<size_t>(buffer) + 1);
  std::vector<Use>& uses = uses_[static_cast<size_t>(buffer)];
  if (uses.empty() || uses.back().step != step) uses.push_back({step, moment, moment});
  uses.back().last = moment;
}

Buffer Liveness::lifetime(int buffer, int64_t size_bytes) const {
  if (static_cast<size_t>(buffer) >= uses_.size() || uses_[static_cast<size_t>(buffer)].empty())
    return {0, 0, size_bytes};
  const std::vector<Use>& uses = uses_[static_cast<size_t>(buffer)];
  return {uses.front().first, uses.back().last + 1, size_bytes};
}

bool Liveness::ends_before(int a, int b) const {
  const std::vector<Use>&first = uses_[static_cast<size_t>(a)], &second = uses_[static_cast<size_t>(b)];
  return std::all_of(first.begin(), first.end(), [&](const Use& x) {
    return std::all_of(second.begin(), second.end(),
                       [&](const Use& y) { return x.step == y.step ? x.last < y.first : before(x.step, y.step); });
  });
}

Meetings Liveness::meetings(const std::vector<int>& buffers) const {
  Meetings out;
  if (total_) return out;
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (size_t j = i + 1; j < buffers.size(); ++j) {
      const Buffer x = lifetime(buffers[i], 1), y = lifetime(buffers[j], 1);
      if (x.lower == x.upper || y.lower == y.upper || conflict(x, y)) continue;
      const bool apart = x.lower < y.lower ? ends_before(buffers[i], buffers[j]) : ends_before(buffers[j], buffers[i]);
      if (!apart) out.emplace_back(i, j);
    }
  }
  return out;
}

}  // namespace hetnn::memory
