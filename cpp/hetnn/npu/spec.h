// The data sheet of an NPU: sizes, rates, operators and numerics, read from JSON.
#pragma once

#include <algorithm>
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

enum class MacKind : uint8_t { systolic, dot_block };
/// Which operand stays in a systolic array: weights, outputs or inputs.
enum class Dataflow : uint8_t { ws, os, is };

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
};

/// One memory. `burst_bytes` is the unit of transfers: shorter or unaligned runs cost whole bursts.
struct Memory {
  int64_t bytes = 0;  // 0: as much as is needed
  int64_t banks = 1, ports = 1;
  double bytes_per_cycle = 0;  // of each bank and port
  int64_t read_latency_cycles = 0;
  int64_t write_latency_cycles = 0;
  int64_t burst_bytes = 1;

  double rate() const { return bytes_per_cycle * static_cast<double>(banks) * static_cast<double>(ports); }
};

struct Dma {
  int64_t channels = 1;
  int64_t max_outstanding = 1;
  int64_t align_bytes = 1;
};

/// The engine for elementwise work, activations, pooling, moves and reductions.
struct Vector {
  int64_t lanes = 1;
  double elem_cycles = 1;  // per lane and element of an elementwise operation
  double act_cycles = 1;   // per lane and element of an activation
};

struct Numerics {
  /// Of int8 requantization: those that the engines know, the first where a model states none.
  std::vector<Rounding> roundings = {Rounding::double_rounding};
  bool rounds(Rounding as) const { return std::find(roundings.begin(), roundings.end(), as) != roundings.end(); }
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
  std::map<DType, double> mac, vector_op;  // a multiply-accumulate, and an element of the other engine
  double sram_byte = 0;
  double dram_byte = 0;
  double flash_byte = 0;
  std::string source;
};

struct Spec {
  std::string name;
  double clock_hz = 0;
  int64_t cores = 1;  // each with all engines but the DMA; what an instruction computes is dealt to them
  Mac mac;
  std::vector<Memory> sram;     // the scratchpad
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
  /// Where figures come from, by path (`sram`, `mac.rows`); a path covers everything below it.
  std::map<std::string, std::string, std::less<>> provenance;

  const Memory& scratchpad() const { return sram.front(); }
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
