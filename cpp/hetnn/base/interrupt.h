// Ending long work: whoever begins it says what may end it, and the work asks now and then.
#pragma once

#include <functional>

namespace hetnn {

/// While it lives, check_interrupt on this thread calls `ask`, which throws to end the work.
class InterruptScope {
 public:
  explicit InterruptScope(std::function<void()> ask);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

 private:
  std::function<void()> outer_;
};

/// Called wherever work may go on for long: asks, at most every 20 ms, whether it shall end.
void check_interrupt();

}  // namespace hetnn
