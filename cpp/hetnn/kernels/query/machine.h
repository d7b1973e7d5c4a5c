// What kernels know of a processor: how fast it multiplies and reads, and how large its caches are.
//
// Two of them matter. What is chosen when compiling is chosen for the default, or for what a calibration measured, so
// that files do not depend on where they were made; how a kernel cuts its work, which changes no result, follows the
// caches of the processor that it runs on.
#pragma once

#include <array>
#include <cstdint>

namespace hetnn::kernels {

/// Where bytes are read from, the nearest first.
enum MemoryLevel : uint8_t { kFirstLevel, kSecondLevel, kThirdLevel, kMemory, kMemoryLevels };

/// A figure of one core, and of all that were measured together.
struct CoreFigure {
  double one, all;
};

/// The defaults are two cores of a server of 2024 with AVX-512.
struct Machine {
  int threads = 2;                            // that `all` stands for
  CoreFigure macs_per_us = {123.5e3, 247e3};  // multiply-adds of f32
  std::array<CoreFigure, kMemoryLevels> bytes_per_us = {{{265e3, 530e3}, {189e3, 378e3}, {31e3, 62e3}, {25e3, 50e3}}};
  std::array<int64_t, kMemory> cache_bytes = {48 << 10, 1 << 20, 32 << 20};
  double barrier_us = 0.1;

  /// The same with all times so many times as long.
  Machine slowed(double times) const;
  /// A figure for so many threads: between one and all in proportion, beyond all no more than these.
  double of(const CoreFigure& figure, int threads_used) const;
  /// The nearest level that holds so many bytes beside as many of others; a third level is shared by many.
  MemoryLevel level_of(double bytes) const;
};

/// That of files: the same everywhere.
const Machine& default_machine();

/// The default with the caches of this processor, as the system tells them.
const Machine& this_machine();

}  // namespace hetnn::kernels
