// What each layer of a command stream takes, followed through its words by the clock of the machine's data sheet.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hetnn/npu/code.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/timing.h"

namespace hetnn::npu {

/// Of one layer, over all its words.
struct LayerTime {
  int64_t cycles = 0;          // by which it puts off the end of all
  int64_t compute_cycles = 0;  // that the engines for products and for elements are busy
  int64_t memory_cycles = 0;   // that transfers take
  int64_t stall_cycles = 0;    // by which it takes longer than it computes
  int64_t sram_peak_bytes = 0;
  double energy_nj = 0;
  double utilization = 0;  // macs / (cycles x multipliers)
};

/// Cycles in which the end of the stream is put off by words of one layer that stand side by side. Spans do not overlap
/// and leave nothing out, so they are a time line.
struct LayerSpan {
  int64_t layer = 0;
  int64_t begin_cycles = 0, end_cycles = 0;
  int64_t stall_cycles = 0;
};

struct LayerTimes {
  std::vector<LayerTime> layers;  // as in the variant
  std::vector<LayerSpan> spans;   // in order; those of one layer that follow each other are one
};

/// Told of every instruction, when the clock has taken it.
using OnInstruction = std::function<void(const Clock& clock, const Instruction& instruction, int64_t layer)>;

/// `words` are the variant's.
LayerTimes time_layers(const Spec& spec, std::span<const uint64_t> words, const Variant& variant,
                       const OnInstruction& on_instruction = {});

}  // namespace hetnn::npu
