// Layer by layer from the words themselves: what takes longer than the engines compute is a stall.
#include "hetnn/npu/layer_times.h"

#include <algorithm>

#include "hetnn/npu/access.h"

namespace hetnn::npu {
namespace {

int64_t busy_cycles(const Timing& timing, Engine engine) { return timing.busy_cycles[static_cast<size_t>(engine)]; }
int64_t compute_cycles(const Timing& timing) {
  return busy_cycles(timing, Engine::mac) + busy_cycles(timing, Engine::vector);
}

}  // namespace

LayerTimes time_layers(const Spec& spec, std::span<const uint64_t> words, const Variant& variant,
                       const OnInstruction& on_instruction) {
  const auto multipliers =
      static_cast<double>(std::max<int64_t>(spec.mac.macs_per_cycle, spec.mac.rows * spec.mac.cols));
  LayerTimes out;
  out.layers.resize(variant.layers.size());
  Clock clock(spec);
  size_t at = 0;
  for (const Run& run : variant.runs) {
    LayerTime& layer = out.layers.at(static_cast<size_t>(run.layer));
    const Timing before = clock.totals();
    const int64_t begin = clock.now_cycles();
    const size_t end = at + static_cast<size_t>(run.words);
    while (at < end) {
      const Instruction instruction = decode(words, at);
      clock.step(instruction);
      layer.sram_peak_bytes = std::max(layer.sram_peak_bytes, sram_reach_bytes(instruction));
      if (on_instruction) on_instruction(clock, instruction, run.layer);
    }
    const Timing& after = clock.totals();
    const int64_t later = clock.now_cycles() - begin;
    const int64_t computed = compute_cycles(after) - compute_cycles(before);
    layer.cycles += later;
    layer.compute_cycles += computed;
    layer.memory_cycles += busy_cycles(after, Engine::dma) - busy_cycles(before, Engine::dma);
    layer.energy_nj += after.energy_nj - before.energy_nj;
    if (later == 0) continue;
    const LayerSpan span{run.layer, begin, begin + later, std::max<int64_t>(later - computed, 0)};
    if (!out.spans.empty() && out.spans.back().layer == run.layer) {
      out.spans.back().end_cycles = span.end_cycles;
      out.spans.back().stall_cycles += span.stall_cycles;
    } else {
      out.spans.push_back(span);
    }
  }
  for (size_t k = 0; k < out.layers.size(); ++k) {
    LayerTime& layer = out.layers[k];
    layer.stall_cycles = std::max<int64_t>(layer.cycles - layer.compute_cycles, 0);
    if (layer.cycles > 0) {
      layer.utilization = std::min(
          1.0, static_cast<double>(variant.layers[k].macs) / (static_cast<double>(layer.cycles) * multipliers));
    }
  }
  return out;
}

}  // namespace hetnn::npu
