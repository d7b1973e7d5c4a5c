// What kernels compute and move, and the time that this takes a processor.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/query/machine.h"

namespace hetnn::kernels {

/// What one run computes and moves. Arithmetic is counted in multiply-adds of a vector of 16 lanes, or what takes as
/// long: lanes that are computed for nobody count.
struct Work {
  double multiplies = 0;                      // on one thread, while bytes are fetched
  double apart = 0;                           // on one thread
  std::array<double, kMemoryLevels> bytes{};  // that all threads fetch from that level
  double waited_bytes = 0;                    // from memory, not while anything is computed
  int64_t grains = 1;                         // parts of one size that threads share
  int barriers = 0;                           // where they meet before the end

  /// Bytes that were last touched with so many others. Where these left the caches, nothing has asked for them before
  /// they are needed, as weights are.
  Work& fetch(double fetched, double beside, const Machine& machine) {
    const MemoryLevel level = machine.level_of(beside);
    (level == kMemory ? waited_bytes : bytes[level]) += fetched;
    return *this;
  }
};

/// Vectors that hold so many lanes, of which the last may be empty in part.
double vectors_of(int64_t lanes);

/// Of the elements of such operands or results.
double bytes_of(std::span<const TensorView> views);

/// What an operator does, whichever way.
struct Amounts {
  double macs = 0, flops = 0;
  double bytes = 0;  // of operands and results
};

/// What a variant's work is for a call that it serves: its own account, or what kernels of its class make of the
/// amounts; and what the steps behind it take.
Work work_of(const Variant& variant, const KernelCall& call, const Amounts& amounts, const Machine& machine,
             int threads);

/// Of a call that is computed by its operator's meaning.
Work work_of_meaning(const Amounts& amounts);

/// Of 7 grains two threads take as long as of 8.
double time_us(const Work& work, const Machine& machine, int threads);

/// Multiply-adds of the sums of `taps` runs of `k` products, counted with those in whose time a tile of results and a
/// run begin.
double product_steps(int64_t taps, int64_t k);

/// Of the product of rows by columns in panels, of such sums: tiles of few columns or rows wait for loads or for one
/// another.
double product_multiplies(int64_t rows, int64_t taps, int64_t k, int64_t cols);

/// The arithmetic of so many of them, whose tiles of 14 rows by two panels are shared.
Work product_work(int64_t products, int64_t rows, int64_t taps, int64_t k, int64_t cols);

}  // namespace hetnn::kernels
