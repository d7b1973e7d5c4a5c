// Places in order of arrival.
#include "hetnn/base/fair_semaphore.h"

#include <algorithm>

#include "hetnn/base/background.h"

namespace hetnn {

void FairSemaphore::start_anew_in_child() {
  if (forks_ == forks()) return;
  forks_ = forks();
  free_ = places_;
  waiting_.clear();
}

bool FairSemaphore::try_enter() {
  const std::lock_guard lock(mutex_);
  start_anew_in_child();
  if (free_ == 0) return false;
  --free_;
  return true;
}

void FairSemaphore::enter(const Stop* stop) {
  std::unique_lock lock(mutex_);
  start_anew_in_child();
  if (free_ > 0) {
    --free_;
    return;
  }
  Waiter self;
  waiting_.push_back(&self);
  while (!self.admitted) {
    if (!stop) {
      self.called.wait(lock);
      continue;
    }
    auto until = Stop::Clock::now() + Stop::kEvery;
    if (stop->deadline()) until = std::min(until, *stop->deadline());
    self.called.wait_until(lock, until);
    if (self.admitted || !stop->asked()) continue;
    waiting_.remove(&self);
    lock.unlock();
    stop->check();
  }
}

void FairSemaphore::leave() {
  const std::lock_guard lock(mutex_);
  if (forks_ != forks()) return;
  if (waiting_.empty()) {
    ++free_;
    return;
  }
  // The place goes to who came first, and never stands free in between.
  Waiter* next = waiting_.front();
  waiting_.pop_front();
  next->admitted = true;
  next->called.notify_one();
}

}  // namespace hetnn
