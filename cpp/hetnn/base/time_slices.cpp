#include "hetnn/base/time_slices.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hetnn {
namespace {

// What sched_getattr and sched_setattr take, in its first version.
struct Scheduling {
  uint32_t size = sizeof(Scheduling), policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};

constexpr uint64_t kNotForChildren = 1;  // SCHED_FLAG_RESET_ON_FORK

}  // namespace

void ask_for_slices(uint64_t ns) {
  Scheduling scheduling;
  if (syscall(SYS_sched_getattr, 0, &scheduling, sizeof scheduling, 0) != 0) return;
  if (scheduling.policy != SCHED_OTHER || scheduling.runtime_ns == 0) return;  // of a system without such slices
  scheduling.flags |= kNotForChildren;
  scheduling.runtime_ns = ns;
  static_cast<void>(syscall(SYS_sched_setattr, 0, &scheduling, 0));
}

}  // namespace hetnn
#else
namespace hetnn {

void ask_for_slices(uint64_t) {}

}  // namespace hetnn
#endif
