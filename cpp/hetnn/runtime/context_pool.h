// What runs leave behind for those to come.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>

#include "hetnn/runtime/context.h"

namespace hetnn::runtime {

/// Idle contexts, bounded by the bytes that they hold; the least recently used go first. A thread that runs a small
/// network again and again finds its own where it left it, and waits for no other thread.
class ContextPool {
 public:
  ContextPool() = default;
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;
  ~ContextPool();

  /// One whose phase is bound to inputs of these types and shapes; null where none is idle.
  std::unique_ptr<Context> take(std::span<const ops::View> inputs);
  void give_back(std::unique_ptr<Context> context);

  /// One is always kept, that given back last.
  void keep_at_most(int64_t bytes);
  int64_t kept_bytes();

 private:
  static constexpr size_t kPlaces = 16, kMostIdle = 64;
  static constexpr int64_t kMostKept_bytes = int64_t{256} << 20;  // unless told otherwise
  // On a cache line of its own, since threads have places of their own.
  struct alignas(64) Place {
    std::atomic<Context*> context{nullptr};
    std::atomic<int64_t> bytes{0};  // of the one that stands there or was taken from there
  };
  using Idle = std::list<std::unique_ptr<Context>>;

  Place& own_place();
  std::unique_ptr<Context> take_from(Place& place, std::span<const ops::View> inputs);
  /// Moves what stands in places to the list.
  void collect();
  /// Takes out what is beyond the bound, to die once the lock is let go, which is held here.
  Idle surplus();
  void keep(std::unique_ptr<Context> context);

  std::array<Place, kPlaces> places_;
  std::atomic<int64_t> most_bytes_{kMostKept_bytes};
  std::mutex mutex_;
  Idle idle_;  // most recently given back first
};

}  // namespace hetnn::runtime
