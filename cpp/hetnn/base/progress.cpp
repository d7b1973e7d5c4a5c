// Who is told of each thread's progress, and the step at hand.
#include "hetnn/base/progress.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hetnn {
namespace {

using Clock = std::chrono::steady_clock;

struct Told {
  ProgressScope::Tell tell;
  std::string_view step = {};
  double from = 0, to = 1;  // of the whole
  double done = 0;
  Clock::time_point next = {};
};
thread_local Told told;

void tell(double done) {
  told.done = std::max(told.done, done);
  told.next = Clock::now() + std::chrono::milliseconds(100);
  told.tell(told.step, told.done);
}

}  // namespace

struct ProgressScope::Outer {
  Told told;
};

ProgressScope::ProgressScope(Tell tell) : outer_(std::make_unique<Outer>()) {
  outer_->told = std::exchange(told, {});
  told.tell = std::move(tell);
}
ProgressScope::~ProgressScope() { told = std::move(outer_->told); }

ProgressStep::ProgressStep(std::string_view step, double from, double to)
    : step_(std::exchange(told.step, step)), from_(told.from), to_(told.to) {
  const double length = to_ - from_;
  told.from = from_ + length * from;
  told.to = from_ + length * to;
  if (told.tell) tell(told.from);
}

ProgressStep::~ProgressStep() {
  told.step = step_;
  told.from = from_;
  told.to = to_;
}

void announce_parts(size_t done, size_t of) {
  if (!told.tell || of == 0 || Clock::now() < told.next) return;
  tell(told.from + (told.to - told.from) * static_cast<double>(std::min(done, of)) / static_cast<double>(of));
}

}  // namespace hetnn
