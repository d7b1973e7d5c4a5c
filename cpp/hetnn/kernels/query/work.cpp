// The time of work, and work that kernels of several families do.
#include "hetnn/kernels/query/work.h"

#include <algorithm>

#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

double time_us(const Work& work, const Machine& machine, int threads) {
  constexpr double kApart = 0.125;  // of what takes less time, the part that does not overlap
  threads = std::clamp(threads, 1, std::max(machine.threads, 1));
  const int64_t grains = std::max<int64_t>(work.grains, 1), rounds = (grains + threads - 1) / threads;
  const double share = static_cast<double>(rounds) / static_cast<double>(grains);
  // All cores together may be slower than each by itself.
  const double slowed = machine.macs_per_us.one * threads / machine.of(machine.macs_per_us, threads);
  double fetch_us = 0;
  for (size_t level = 0; level < work.bytes.size(); ++level)
    fetch_us += work.bytes[level] / machine.of(machine.bytes_per_us[level], threads);
  const double us = share * slowed * kPanel / machine.macs_per_us.one;
  const double compute_us = work.multiplies * us;
  return work.apart * us + std::max(compute_us, fetch_us) + std::min(compute_us, fetch_us) * kApart +
         work.barriers * machine.barrier_us;
}

double product_steps(int64_t taps, int64_t k) {
  constexpr int64_t kTileSteps = 12, kRunSteps = 2;
  return static_cast<double>(taps * (k + kRunSteps) + kTileSteps);
}

double product_multiplies(int64_t rows, int64_t taps, int64_t k, int64_t cols) {
  // Of one panel a tile waits a quarter of the time for what it loads. A tile's sums are added to every fourth cycle,
  // of which each has two multiply-adds.
  constexpr double kLone = 1.25, kLeastSums = 8;
  constexpr int64_t kRows = 14;
  const int64_t panels = (cols + kPanel - 1) / kPanel, tiles = std::max<int64_t>(1, (rows + kRows - 1) / kRows);
  const auto wide = static_cast<double>(panels);
  const double sums = static_cast<double>(rows) * (panels == 1 ? kLone : wide);
  const double least = static_cast<double>(tiles) * kLeastSums * (panels > 1 ? wide / 2 : 1);
  return product_steps(taps, k) * std::max(sums, least);
}

}  // namespace hetnn::kernels
