// A bound on how many run at once; who comes first goes first.
#pragma once

#include <condition_variable>
#include <list>
#include <mutex>
#include <utility>

#include "hetnn/base/stop.h"

namespace hetnn {

/// So many places. A process that was forked while some were taken begins with all of them free, because those who held
/// them are not there to give them back.
class FairSemaphore {
 public:
  explicit FairSemaphore(int places) : places_(places), free_(places) {}

  /// Takes a place if one is free and nobody waits for it.
  bool try_enter();
  /// Takes a place, after those who came before. Throws what `stop` does, which may be null.
  void enter(const Stop* stop);
  void leave();
  int places() const { return places_; }

 private:
  struct Waiter {
    std::condition_variable called;
    bool admitted = false;
  };
  void start_anew_in_child();

  std::mutex mutex_;
  const int places_;
  int free_;
  int forks_ = 0;
  std::list<Waiter*> waiting_;
};

/// A place while it lives.
class Admission {
 public:
  explicit Admission(FairSemaphore* of) : of_(of) {}
  Admission(Admission&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  Admission& operator=(Admission&&) = delete;
  ~Admission() {
    if (of_) of_->leave();
  }

 private:
  FairSemaphore* of_;  // null: none is held
};

}  // namespace hetnn
