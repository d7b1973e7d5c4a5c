#include "hetnn/base/waiting_thread.h"

#include "hetnn/base/time_slices.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#endif

namespace hetnn {
namespace {

constexpr uint64_t kShortSliceNs = 100'000;  // the shortest there is

}  // namespace

#if defined(__linux__)
WaitingThread::WaitingThread() : id_(static_cast<int>(syscall(SYS_gettid))) { ask_for_slices(kShortSliceNs); }

WaitingThread::Here::Here(WaitingThread& thread) : alone_(thread.mutex_), id_(thread.id_) {
  cpu_set_t cpus, here;
  const int cpu = sched_getcpu();
  // One that has ended may have left its number to a thread of another process.
  if (cpu < 0 || syscall(SYS_tgkill, getpid(), id_, 0) != 0 || sched_getaffinity(id_, sizeof cpus, &cpus) != 0) return;
  if (!CPU_ISSET(cpu, &cpus)) return;
  allowed_ = std::bit_cast<decltype(allowed_)>(cpus);
  CPU_ZERO(&here);
  CPU_SET(cpu, &here);
  moved_ = sched_setaffinity(id_, sizeof here, &here) == 0;
}

WaitingThread::Here::~Here() {
  if (!moved_) return;
  const auto cpus = std::bit_cast<cpu_set_t>(allowed_);
  sched_setaffinity(id_, sizeof cpus, &cpus);
}
#else
WaitingThread::WaitingThread() { ask_for_slices(kShortSliceNs); }
WaitingThread::Here::Here(WaitingThread& thread) : alone_(thread.mutex_), id_(thread.id_) {}
WaitingThread::Here::~Here() = default;
#endif

}  // namespace hetnn
