// A place for every few threads, taken and filled by one exchange; behind them a list under a lock.
#include "hetnn/runtime/context_pool.h"

namespace hetnn::runtime {
namespace {

// Of the bytes, one in so many is for places.
constexpr int64_t kShareOfPlaces = 4;

size_t number_of_this_thread() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

ContextPool::~ContextPool() {
  for (Place& place : places_) delete place.context.load(std::memory_order_acquire);
}

ContextPool::Place& ContextPool::own_place() { return places_[number_of_this_thread() % kPlaces]; }

std::unique_ptr<Context> ContextPool::take_from(Place& place, std::span<const ops::View> inputs) {
  if (!place.context.load(std::memory_order_relaxed)) return nullptr;
  std::unique_ptr<Context> found(place.context.exchange(nullptr, std::memory_order_acquire));
  if (!found || found->serves(inputs)) return found;
  Context* empty = nullptr;
  if (place.context.compare_exchange_strong(empty, found.get(), std::memory_order_acq_rel)) {
    static_cast<void>(found.release());
  } else {
    keep(std::move(found));
  }
  return nullptr;
}

std::unique_ptr<Context> ContextPool::take(std::span<const ops::View> inputs) {
  if (auto own = take_from(own_place(), inputs)) return own;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = idle_.begin(); at != idle_.end(); ++at) {
      if (!(*at)->serves(inputs)) continue;
      std::unique_ptr<Context> out = std::move(*at);
      idle_.erase(at);
      return out;
    }
  }
  for (Place& place : places_) {
    if (auto other = take_from(place, inputs)) return other;
  }
  return nullptr;
}

void ContextPool::give_back(std::unique_ptr<Context> context) {
  const int64_t most_bytes = most_bytes_.load(std::memory_order_relaxed) / kShareOfPlaces;
  if (context->bytes() * static_cast<int64_t>(kPlaces) <= most_bytes) {
    Place& place = own_place();
    place.bytes.store(context->bytes(), std::memory_order_relaxed);
    context.reset(place.context.exchange(context.release(), std::memory_order_acq_rel));
  }
  if (context) keep(std::move(context));
}

void ContextPool::keep(std::unique_ptr<Context> context) {
  Idle one, dropped;
  one.push_back(std::move(context));
  const std::lock_guard lock(mutex_);
  idle_.splice(idle_.begin(), one);
  dropped = surplus();
}

ContextPool::Idle ContextPool::surplus() {
  int64_t left_bytes = most_bytes_.load(std::memory_order_relaxed);
  for (const Place& place : places_) left_bytes -= place.bytes.load(std::memory_order_relaxed);
  size_t count = 0;
  auto end = idle_.begin();
  for (; end != idle_.end() && count < kMostIdle; ++end, ++count) {
    left_bytes -= (*end)->bytes();
    if (count > 0 && left_bytes < 0) break;
  }
  Idle out;
  out.splice(out.begin(), idle_, end, idle_.end());
  return out;
}

void ContextPool::collect() {
  for (Place& place : places_) {
    if (Context* context = place.context.exchange(nullptr, std::memory_order_acq_rel)) {
      place.bytes.store(0, std::memory_order_relaxed);
      keep(std::unique_ptr<Context>(context));
    }
  }
}

void ContextPool::keep_at_most(int64_t bytes) {
  most_bytes_.store(bytes, std::memory_order_relaxed);
  collect();
  Idle dropped;
  const std::lock_guard lock(mutex_);
  dropped = surplus();
}

int64_t ContextPool::kept_bytes() {
  collect();
  int64_t out = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& context : idle_) out += context->bytes();
  return out;
}

}  // namespace hetnn::runtime
