// The data sheet of an NPU: sizes, rates, operators and numerics, read from JSON.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/base/layout.h"
#include "hetnn/base/requantize.h"

namespace hetnn::npu {

enum class Engine : uint8_t;
enum class MacKind : uint8_t { systolic, dot_block };
/// Which operand stays in a systolic array: weights, outputs or inputs.
enum class Dataflow : uint8_t { ws, os, is };

/// What an instruction's operand is to its engine, for the scratchpads that it may lie in.
enum class Operand : uint8_t { maps, weights, sums, results, loads, stores };
inline constexpr size_t kOperands = 6;

/// Names of scratchpads in which an engine's operands may lie, by `Operand`; none named: in all of them.
using Reach = std::array<std::vector<std::string>, kOperands>;

/// What lies in a scratchpad, all of a kind in the same. Of the vector engine's parameters all are maps.
enum class Content : uint8_t { maps, weights, sums };
inline constexpr size_t kContents = 3;
/// Bytes of each.
using ContentBytes = std::array<int64_t, kContents>;

/// A sheet has at most so many scratchpads.
inline constexpr size_t kMostScratchpads = 4;
/// Bytes read and written in each.
using ScratchpadBytes = std::array<double, kMostScratchpads>;

/// The engine for convolution and matrix multiplication.
struct Mac {
  MacKind kind = MacKind::dot_block;
  // systolic: rows x cols multipliers.
  int64_t rows = 0;
  int64_t cols = 0;
  Dataflow dataflow = Dataflow::ws;
  bool preload_hidden = false;  // the next weights shift in while the array works
  // dot_block: each cycle computes an output block of height x width x channels over some input channels.
  int64_t macs_per_cycle = 0;
  int64_t block_height = 1;
  int64_t block_width = 1;
  int64_t block_channels = 1;
  int64_t min_block_cycles = 0;
  /// Cycles of one step by element type (a type that is absent takes 1).
  std::map<DType, int64_t> step_cycles;
  int64_t accumulator_bytes = 0;  // of the sums of one instruction, 4 bytes each; 0: as many as are needed
  bool adds_map = true;           // a second map of the scratchpad to its result
  Reach reach;
};

/// One memory. `burst_bytes` is the unit of transfers: shorter or unaligned runs cost whole bursts.
struct Memory {
  std::string name = {};  // of a scratchpad
  int64_t bytes = 0;      // 0: as much as is needed
  int64_t banks = 1, ports = 1;
  double bytes_per_cycle = 0;        // of each bank and port
  double write_bytes_per_cycle = 0;  // 0: as many as are read
  int64_t read_latency_cycles = 0;
  int64_t write_latency_cycles = 0;
  int64_t burst_bytes = 1;

  /// Bytes a cycle of all banks and ports.
  double rate(bool writes = false) const {
    const double of_port = writes && write_bytes_per_cycle > 0 ? write_bytes_per_cycle : bytes_per_cycle;
    return of_port * static_cast<double>(banks) * static_cast<double>(ports);
  }
};

struct Dma {
  int64_t channels = 1;
  int64_t max_outstanding = 1;
  int64_t align_bytes = 1;
  Reach reach;
};

/// Of a figure by element type, that of one.
inline double of_type(const std::map<DType, double>& figures, DType dtype, double absent) {
  const auto at = figures.find(dtype);
  return at == figures.end() ? absent : at->second;
}

/// The engine for elementwise work, activations, pooling, moves and reductions.
struct Vector {
  int64_t lanes = 1;
  /// Per lane and element by type (a type that is absent takes 1): of an elementwise operation, and of an activation.
  std::map<DType, double> elem_cycles, act_cycles;
  // Per lane and element of rows of i8, which are worked on one by one; none: no such instruction.
  std::optional<double> softmax_cycles, normalize_cycles;
  double row_cycles = 0;  // of each such row besides
  Reach reach;
};

struct Numerics {
  /// Of int8 requantization: those that the engines know.
  std::vector<Rounding> roundings = {Rounding::double_rounding};
  bool rounds(Rounding as) const { return std::find(roundings.begin(), roundings.end(), as) != roundings.end(); }
  /// That of a layer which states none: what quantized types mean where the engines know it, else the first.
  Rounding unstated() const { return rounds(Rounding::half_even_fp32) ? Rounding::half_even_fp32 : roundings.front(); }
  std::string accumulate = "f32";        // of f16 and f32
  std::string order = "kernel_channel";  // sums run over kernel row, kernel column, input channel
};

/// One operator of the device, under its name in the IR.
struct OpEntry {
  std::vector<DType> dtypes;
  /// Bounds on the operator's metrics: `kernel_h_max`, `groups_min`.
  std::map<std::string, double, std::less<>> limits;
  int64_t max_rank = 0;  // 0: no bound
};

/// Results that may not leave the device: those of an operator, an element type and a layout that are listed. An empty
/// list holds all of them.
struct NonExportable {
  std::vector<std::string> ops;
  std::vector<DType> dtypes;
  std::vector<Layout> layouts;
};

/// Energy of single actions, in picojoules. A figure of 0 is not counted.
struct Energy {
  std::map<DType, double> mac, vector_op;                // a multiply-accumulate, and an element of the other engine
  std::map<std::string, double, std::less<>> sram_byte;  // by the scratchpad's name
  double dram_byte = 0;
  double flash_byte = 0;
  std::string source;
  double sram_byte_pj(const std::string& scratchpad) const {
    const auto own = sram_byte.find(scratchpad), all = sram_byte.find("");
    return own != sram_byte.end() ? own->second : all != sram_byte.end() ? all->second : 0;
  }
};

struct Spec {
  std::string name;
  double clock_hz = 0;
  int64_t cores = 1;  // each with all engines but the DMA; what an instruction computes is dealt to them
  Mac mac;
  std::vector<Memory> sram;     // scratchpads, whose addresses follow one another
  Memory dram;                  // where models come from
  std::optional<Memory> flash;  // where their constants lie, if not in dram
  Dma dma;
  Vector vector;
  double launch_us = 0;  // host time of one launch
  bool paced = false;    // a visit takes by the clock what is predicted for it, not what its simulation takes
  std::map<std::string, OpEntry, std::less<>> ops;
  std::vector<NonExportable> non_exportable;
  Numerics numerics;
  Energy energy_pj;
  std::array<uint8_t, kContents> homes = {};  // which scratchpad, by Content; see find_homes
  /// Where figures come from, by path (`sram`, `mac.rows`); a path covers everything below it.
  std::map<std::string, std::string, std::less<>> provenance;

  /// The scratchpad in which what is of this kind lies, and its place in `sram`.
  const Memory& home(Content content) const { return sram[memory_of(content)]; }
  size_t memory_of(Content content) const { return homes[static_cast<size_t>(content)]; }
  /// The first address of a scratchpad.
  int64_t base_of(size_t memory) const;
  /// One past the last address.
  int64_t end_address() const { return base_of(sram.size()); }
  /// The scratchpad of an address below the end.
  size_t memory_at(int64_t address) const;
  /// Bytes that are taken of the scratchpad of maps; more than any has where another one is too small.
  int64_t taken(const ContentBytes& bytes) const;
  /// Whether an engine's operand may lie in the scratchpad.
  static bool reaches(const Reach& reach, Operand operand, const Memory& memory);
  const Reach& reach_of(Engine engine) const;
  /// Says where everything lies: in the largest scratchpad that all engines reach which read or write it. InvalidModel
  /// where there is no path from a memory to an engine, a name that is none, or a scratchpad in which nothing lies.
  void find_homes(std::string_view where);

  const Memory& constants() const { return flash ? *flash : dram; }
  bool has_op(std::string_view op) const { return ops.find(op) != ops.end(); }
};

/// Reads a spec of schema 2, or of 1, which has fewer keys. Throws InvalidModel that names the path (`relu-only.json:
/// mac.rows`), what was found, what is expected and, for a misspelt key, the nearest known one. `where` is what
/// messages call the text.
Spec parse_spec(std::string_view text, std::string_view where);

/// The JSON text of a spec; parse_spec reads it back to the same spec.
std::string spec_to_json(const Spec& spec);

/// The published JSON schema (draft 2020-12) of the format, made from the same table that parse_spec checks with.
std::string spec_schema();

/// Paths of numbers in `text` that no entry of its `provenance` covers, in order.
std::vector<std::string> figures_without_source(std::string_view text);

/// A weight-stationary array without limits on memory or bandwidth, as in SCALE-Sim: the built-in family
/// `systolic-<rows>x<cols>`. Throws InvalidModel unless both are in [1, 4096].
Spec systolic_spec(int64_t rows, int64_t cols);
/// The member of the family called `name`, or nothing when `name` has another form.
std::optional<Spec> builtin_spec(std::string_view name);

std::string_view dataflow_name(Dataflow dataflow);
/// InvalidModel for a name other than ws, os and is.
Dataflow dataflow_from_name(std::string_view name);

}  // namespace hetnn::npu
