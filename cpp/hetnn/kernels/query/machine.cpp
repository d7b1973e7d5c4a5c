// Figures of processors, and what the system says of this one's caches.
#include "hetnn/kernels/query/machine.h"

#include <unistd.h>

#include <algorithm>

namespace hetnn::kernels {

Machine Machine::slowed(double times) const {
  Machine out = *this;
  const auto slow = [&](CoreFigure& figure) { figure = {figure.one / times, figure.all / times}; };
  slow(out.macs_per_us);
  for (CoreFigure& level : out.bytes_per_us) slow(level);
  out.barrier_us *= times;
  return out;
}

double Machine::of(const CoreFigure& figure, int threads_used) const {
  const int most = std::max(threads, 1), used = std::clamp(threads_used, 1, most);
  return most == 1 ? figure.one : figure.one + (figure.all - figure.one) * (used - 1) / (most - 1);
}

MemoryLevel Machine::level_of(double bytes) const {
  constexpr std::array<double, kMemory> kShare = {2, 2, 4};
  for (const MemoryLevel level : {kFirstLevel, kSecondLevel, kThirdLevel})
    if (bytes * kShare[level] <= static_cast<double>(cache_bytes[level])) return level;
  return kMemory;
}

const Machine& default_machine() {
  static const Machine machine;
  return machine;
}

const Machine& this_machine() {
  static const Machine machine = [] {
    Machine out;
#ifdef _SC_LEVEL2_CACHE_SIZE
    const std::array<int, kMemory> names = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
    for (size_t k = 0; k < names.size(); ++k)
      if (const int64_t bytes = sysconf(names[k]); bytes > 0) out.cache_bytes[k] = bytes;
#endif
    return out;
  }();
  return machine;
}

}  // namespace hetnn::kernels
