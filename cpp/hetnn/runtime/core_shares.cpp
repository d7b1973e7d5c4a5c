// Cores by the greatest number of requests of late.
#include "hetnn/runtime/core_shares.h"

#include <algorithm>
#include <utility>

namespace hetnn::runtime {
namespace {

// For how long as many requests are expected at once as there were.
constexpr int64_t kLateNs = 100'000'000;

}  // namespace

int CoreShares::take(int64_t waiting, int64_t now_ns) {
  const int64_t here = 1 + runs_ + waiting;
  if (here >= crowd_ || now_ns - crowded_ns_ > kLateNs) {
    crowd_ = here;
    crowded_ns_ = now_ns;
  }
  const auto share = static_cast<int>(std::clamp<int64_t>(cores_ / crowd_, 1, free_));
  free_ -= share;
  ++runs_;
  return share;
}

int CoreShares::take_free() {
  ++runs_;
  return std::exchange(free_, 0);
}

void CoreShares::give_back(int cores) {
  free_ += cores;
  --runs_;
}

}  // namespace hetnn::runtime
