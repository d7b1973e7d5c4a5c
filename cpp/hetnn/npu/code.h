// The code of an NPU subgraph: command streams, one for each value of the symbols, and the constants that they share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/base/dtype.h"
#include "hetnn/base/layout.h"

namespace hetnn::npu {

inline constexpr int64_t kCodeVersion = 1;

/// Where a buffer's values stand in the accelerator's DRAM: dense, in this layout, of this element type.
struct Port {
  int32_t buffer = -1;  // of the program
  int64_t offset_bytes = 0;
  DType dtype = DType::f32;
  Layout layout = Layout::plain;
  bool operator==(const Port&) const = default;
};

/// One layer of a command stream, for reports.
struct Layer {
  std::string node;
  std::string op;
  int64_t cycles = 0;  // by which its instructions put off the end
  int64_t dma_bytes = 0;
  int64_t macs = 0;
  int64_t weight_bytes = 0;  // of constants, loaded
  std::string tile = {};     // as the schedule says it
  int64_t cascade = -1;      // the number of the cascade that it is computed in
  bool operator==(const Layer&) const = default;
};

/// Words of a stream that stand side by side and belong to one layer.
struct Run {
  int64_t layer = 0;
  int64_t words = 0;
  bool operator==(const Run&) const = default;
};

/// The command stream for one value of every symbol.
struct Variant {
  Bindings bindings;
  int64_t words_offset_bytes = 0;  // in the program's weights: 64-bit words, little-endian
  int64_t word_count = 0;
  int64_t dram_bytes = 0;  // of the arena, the region that ports lie in
  int64_t sram_peak_bytes = 0;
  int64_t cycles = 0;
  int64_t lower_bound_cycles = 0;
  std::string schedule;      // as text, which compiles to the same words
  std::vector<Port> inputs;  // in the order of the subprogram's inputs
  std::vector<Port> outputs;
  std::vector<Layer> layers;
  std::vector<Run> runs;  // of all words but the end
  bool operator==(const Variant&) const = default;
};

/// Bytes of the program's weights. The constants of a code make the device's read-only region, one after another, each
/// at the next multiple of 64; a variant that needs others adds them at the end.
struct Constant {
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  bool operator==(const Constant&) const = default;
};
inline constexpr int64_t kConstantAlignment = 64;

struct Code {
  std::string spec_json;
  std::vector<Constant> constants;
  std::vector<Variant> variants;
  bool operator==(const Code&) const = default;
};

/// As text and back. InvalidModel names `called` and the key.
std::string write_code(const Code& code);
Code read_code(std::string_view json, const std::string& called);
/// The JSON schema of that text.
std::string code_schema();

}  // namespace hetnn::npu
