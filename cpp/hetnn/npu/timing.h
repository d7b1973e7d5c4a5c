// Closed forms for cycles: of single instructions, and of whole streams on engines that work side by side.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"

namespace hetnn::npu {

/// Cycles of one matrix product on a systolic array: P output pixels, K products in each sum, M filters.
/// ceil(Sr/R) * ceil(Sc/C) * (F + C + T - 2) - 1 with (Sr, Sc, T) = ws (K, M, P), os (P, M, K), is (K, P, M), and F = R
/// for os, 2R otherwise (R when the stationary operand is loaded out of sight, after the first fold). Equals SCALE-Sim
/// v3.
int64_t systolic_cycles(const Mac& mac, int64_t pixels, int64_t products, int64_t filters);

/// What the engine for products works on: `groups` independent convolutions.
struct MacWork {
  DType dtype = DType::f32;
  int64_t out_h = 1, out_w = 1;
  int64_t in_c = 1, out_c = 1;  // of one group
  int64_t kernel = 1;           // kernel positions
  int64_t groups = 1;
  bool is_rows = false;  // the output is out_w rows of one pixel, with which blocks are filled one after another
  double macs() const {
    return static_cast<double>(out_h) * static_cast<double>(out_w) * static_cast<double>(in_c) *
           static_cast<double>(out_c) * static_cast<double>(kernel) * static_cast<double>(groups);
  }
};
int64_t mac_cycles(const Spec& spec, const MacWork& work);

/// Cycles of a transfer of `runs` runs of `run_bytes` each between a memory and the scratchpad.
int64_t dma_cycles(const Memory& memory, int64_t run_bytes, int64_t runs, bool store);

/// Cycles in which an engine reads and writes so many bytes: those of the scratchpad that takes longest.
int64_t scratchpad_cycles(const Spec& spec, const ScratchpadBytes& bytes);
/// The same of what lies with its kind.
int64_t scratchpad_cycles(const Spec& spec, const ContentBytes& bytes);

/// Cycles of `elems` elements at `cycles_each` in every lane.
int64_t vector_cycles(const Spec& spec, double elems, double cycles_each);

/// Cycles of `rows` rows of so many elements, one by one in each core, at `cycles_each` an element in every lane.
int64_t row_cycles(const Spec& spec, int64_t rows, int64_t channels, double cycles_each);

/// The cost of one instruction by itself. Where several transfers may be on their way, the memory's latency keeps no
/// other transfer waiting.
struct Cost {
  int64_t cycles = 0;          // that its engine is busy
  int64_t latency_cycles = 0;  // of a transfer: from its first cycle to when it is finished, beyond those
  int64_t dma_bytes = 0;
  ScratchpadBytes scratchpad_bytes = {};
  double macs = 0;
  double vector_elems = 0;
  DType dtype = DType::f32;  // of the products or elements
};
Cost cost_of(const Spec& spec, const Instruction& instruction);

/// What a stream, or a part of one, takes.
struct Timing {
  int64_t cycles = 0;  // from the moment the engines were last idle together to the end of the last engine
  std::array<int64_t, kEngines> busy_cycles = {};
  std::array<int64_t, kEngines> wait_cycles = {};  // standing still for a token
  int64_t dma_bytes = 0;
  double macs = 0;
  double energy_nj = 0;
};

/// Follows the engines through a stream: each works in order, and starts an instruction when it is free and has its
/// tokens.
class Clock {
 public:
  explicit Clock(const Spec& spec) : spec_(spec) {}
  /// Throws InvalidModel when a wait finds no token: the engines would stand still for ever.
  void step(const Instruction& instruction);
  /// The end of the last engine.
  int64_t now_cycles() const;
  /// When the engine has begun and worked on all that it was given; what it moved may still be on its way.
  int64_t free_at_cycles(Engine engine) const { return free_at_[static_cast<size_t>(engine)]; }
  const Timing& totals() const { return totals_; }

 private:
  // Of a byte outside the scratchpad that it moves.
  double outside_pj(const Instruction& instruction) const;

  const Spec& spec_;
  std::array<int64_t, kEngines> free_at_ = {};  // when the engine may begin its next instruction
  std::array<int64_t, kEngines> done_at_ = {};  // when all that it began is finished
  std::deque<int64_t> transfers_;               // ends of those that are on their way
  std::array<std::array<std::vector<int64_t>, kEngines>, kEngines> tokens_;  // [from][to]: times, oldest first
  std::array<std::array<size_t, kEngines>, kEngines> taken_ = {};
  Timing totals_;
};

Timing time_stream(const Spec& spec, std::span<const Instruction> instructions);

/// One layer of a topology for the timing model alone.
struct LayerTiming {
  std::string name;
  int64_t compute_cycles = 0;
  int64_t stall_cycles = 0;
  int64_t total_cycles = 0;
  double macs = 0;
  double utilization = 0;  // macs / (total cycles x multipliers)
};

/// A convolution layer as SCALE-Sim's topologies state it.
struct TopologyLayer {
  std::string name;
  int64_t pixels = 0;    // output rows x columns
  int64_t products = 0;  // kernel area x channels
  int64_t filters = 0;
  int64_t input_words = 0;
};

/// Reads a topology: convolution (`name, ifmap h, ifmap w, filter h, filter w, channels, filters, stride`) or, when the
/// header has three sizes, GEMM (`name, M, N, K`). Throws InvalidModel naming the line. Output sizes are taken as
/// SCALE-Sim takes them: ceil((ifmap - filter + stride) / stride).
std::vector<TopologyLayer> read_topology(std::string_view csv, std::string_view name);

/// Times one layer. `words_per_cycle` bounds the traffic of each operand with DRAM; infinity or 0 means no bound.
LayerTiming time_layer(const Spec& spec, const TopologyLayer& layer, double words_per_cycle);

}  // namespace hetnn::npu
