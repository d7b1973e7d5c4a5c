// What kernels compute and move, and the time that this takes a processor.
#pragma once

#include <array>
#include <cstdint>

#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/query/machine.h"

namespace hetnn::kernels {

/// What one run computes and moves. Arithmetic is counted in multiply-adds of a vector of 16 lanes, or what takes as
/// long: lanes that are computed for nobody count.
struct Work {
  double multiplies = 0;                      // on one thread, while bytes are fetched
  double apart = 0;                           // on one thread
  std::array<double, kMemoryLevels> bytes{};  // that all threads fetch from that level
  int64_t grains = 1;                         // parts of one size that threads share
  int barriers = 0;                           // where they meet before the end

  /// Bytes that were last touched with so many others.
  Work& fetch(double fetched, double beside, const Machine& machine) {
    bytes[machine.level_of(beside)] += fetched;
    return *this;
  }
};

/// What an operator does, whichever way.
struct Amounts {
  double macs = 0, flops = 0;
  double bytes = 0;  // of operands and results
};

/// What a variant's work is for a call that it serves: its own account, or what kernels of its class make of the
/// amounts.
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

}  // namespace hetnn::kernels
