// What may end the work of each thread, and when it was asked last.
#include "hetnn/base/interrupt.h"

#include <chrono>
#include <utility>

namespace hetnn {
namespace {

using Clock = std::chrono::steady_clock;

struct Asked {
  std::function<void()> ask;
  Clock::time_point next;
};
thread_local Asked asked;

}  // namespace

InterruptScope::InterruptScope(std::function<void()> ask) : outer_(std::exchange(asked.ask, std::move(ask))) {}
InterruptScope::~InterruptScope() { asked.ask = std::move(outer_); }

void check_interrupt() {
  if (!asked.ask) return;
  const Clock::time_point now = Clock::now();
  if (now < asked.next) return;
  asked.next = now + std::chrono::milliseconds(20);
  asked.ask();
}

}  // namespace hetnn
