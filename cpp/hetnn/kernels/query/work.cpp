// The time of work, and work that kernels of several families do.
#include "hetnn/kernels/query/work.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {
namespace {

// What kernels of a class take beside the best multiply-adds: measured on inputs of some megabytes.
struct WorkClass {
  std::string_view name;
  double macs, flops;  // for each of them, as many multiply-adds of one lane take as long
  double bytes = 1;    // as many are fetched
};
constexpr WorkClass kClasses[] = {
    {"attention", 3.4, 3.4}, {"conv", 1.1, 1},     {"elementwise", 1, 1}, {"move", 1, 1, 3},         {"norm", 1, 3.9},
    {"pool", 1, 3.2},        {"product", 1.05, 1}, {"reduce", 1, 10.8},   {"transcendental", 1, 21},
};

Work work_of_class(std::string_view name, const Amounts& amounts, const Machine& machine) {
  const auto* at = std::ranges::find(kClasses, name, &WorkClass::name);
  HETNN_ASSERT(at != std::end(kClasses), "no class of work is called '", name, "'");
  Work work;
  work.multiplies = (amounts.macs * at->macs + amounts.flops * at->flops) / kPanel;
  work.grains = std::max<int64_t>(1, static_cast<int64_t>(amounts.bytes) / 64);
  return work.fetch(amounts.bytes * at->bytes, amounts.bytes, machine);
}

// Steps run on tiles that are in the first-level cache, each a pass over them but for bounds, which most kernels have
// in registers; their operands come from where they are.
void add_steps(Work& work, const Variant& variant, const KernelCall& call, const Machine& machine) {
  // In the time of so many multiply-adds of vectors a step computes one.
  constexpr double kTranscendental = 17, kOther = 5;
  if (call.steps.empty()) return;
  const double vectors = static_cast<double>(call.outputs[0].elems()) / kPanel;
  const double written = bytes_of(call.outputs.first(1));
  for (const Step& step : call.steps) {
    const bool in_registers = !variant.tiles && (step.function == "relu" || step.function == "clamp");
    work.apart += in_registers ? 0 : vectors * (speed_of(step.function) == "transcendental" ? kTranscendental : kOther);
    if (step.input < 0) continue;
    const std::span<const TensorView> operands =
        call.inputs.subspan(static_cast<size_t>(step.input), static_cast<size_t>(operand_count(step)));
    for (const TensorView& operand : operands) {
      const auto read = static_cast<double>(operand.elem_bytes());
      work.fetch(read, read + written, machine);
    }
  }
}

}  // namespace

Work work_of(const Variant& variant, const KernelCall& call, const Amounts& amounts, const Machine& machine,
             int threads) {
  std::string_view name = variant.speed;
  // Elementwise functions share kernels.
  if (name == "elementwise" && variant.op.empty()) name = speed_of(call.params.text("op", ""));
  Work work = variant.work ? variant.work(call, machine, threads) : work_of_class(name, amounts, machine);
  add_steps(work, variant, call, machine);
  return work;
}

Work work_of_meaning(const Amounts& amounts) {
  // Plain loops on one thread.
  constexpr double kOperation = 82, kByte = 10;
  Work work;
  work.multiplies = ((amounts.macs + amounts.flops) * kOperation + amounts.bytes * kByte) / kPanel;
  return work;
}

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
  const double wait_us = work.waited_bytes / machine.of(machine.bytes_per_us[kMemory], threads);
  return work.apart * us + wait_us + std::max(compute_us, fetch_us) + std::min(compute_us, fetch_us) * kApart +
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

double vectors_of(int64_t lanes) {
  const int64_t vectors = (lanes + kPanel - 1) / kPanel;
  return static_cast<double>(vectors);
}

double bytes_of(std::span<const TensorView> views) {
  double out = 0;
  for (const TensorView& view : views) out += static_cast<double>(view.elem_bytes());
  return out;
}

Work product_work(int64_t products, int64_t rows, int64_t taps, int64_t k, int64_t cols) {
  const auto parts = [](int64_t all, int64_t part) { return (all + part - 1) / part; };
  Work work;
  work.multiplies = static_cast<double>(products) * product_multiplies(rows, taps, k, cols);
  work.grains = products * parts(rows, 14) * parts(cols, 2 * kPanel);
  return work;
}

}  // namespace hetnn::kernels
