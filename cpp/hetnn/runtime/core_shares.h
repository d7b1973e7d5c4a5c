// How many of some cores each run gets.
#pragma once

#include <cstdint>

namespace hetnn::runtime {

/// Cores that runs share, each as if there were always as many requests as there were at most of late. If one that is
/// alone for a moment had all, the next would wait for it, so would all behind it, and the server would go on between
/// two speeds. Whoever calls holds a lock.
class CoreShares {
 public:
  explicit CoreShares(int cores) : cores_(cores), free_(cores) {}

  bool any_free() const { return free_ > 0; }

  /// For a run while others wait: 1 <= result; not to be called unless there are free ones.
  int take(int64_t waiting, int64_t now_ns);
  /// All that are free, for a run that is over before another could begin beside it. The same holds.
  int take_free();
  void give_back(int cores);

 private:
  int cores_, free_;
  int64_t runs_ = 0;        // that have cores
  int64_t crowd_ = 1;       // the most requests at once of late
  int64_t crowded_ns_ = 0;  // when there were
};

}  // namespace hetnn::runtime
