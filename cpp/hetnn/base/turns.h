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
class Turns {
 public:
  explicit Turns(int places) : places_(places), free_(places) {}

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
class Turn {
 public:
  explicit Turn(Turns* turns) : turns_(turns) {}
  Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (turns_) turns_->leave();
  }

 private:
  Turns* turns_;  // null: none is held
};

}  // namespace hetnn
