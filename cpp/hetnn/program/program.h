// The executable format as plain data: buffers, commands, subprograms. The compiler writes it, the runtime runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/base/dtype.h"
#include "hetnn/base/layout.h"

namespace hetnn::program {

inline constexpr int64_t kAlignment = 64;

enum class Place : uint8_t { input, output, arena, constant };

/// Memory of one value in one layout.
struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // logical, channels first; of a packed constant the unpacked weight's
  Layout layout = Layout::plain;
  Dim pitch = 0;  // elements between pixels; nhwc only
  Place place = Place::arena;
  /// Constants: where their bytes stand in the weights blob, 64-byte aligned.
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  /// Constants: bytes made by the kernel's pack function.
  bool packed = false;
  bool operator==(const Buffer&) const = default;
};

using Param = std::variant<Dim, double, std::string, std::vector<Dim>, std::vector<double>>;
using Params = std::map<std::string, Param, std::less<>>;

/// One kernel launch on the CPU.
struct Command {
  std::string kernel;
  std::vector<int32_t> inputs;  // buffers
  std::vector<int32_t> outputs;
  Params params;
  std::string node;  // the source node, for traces
  bool operator==(const Command&) const = default;
};

struct CpuCode {
  std::vector<Command> commands;
  bool operator==(const CpuCode&) const = default;
};

/// Where a buffer's values stand in the accelerator's DRAM: dense, in this layout, of this element type.
struct NpuPort {
  int32_t buffer = -1;
  int64_t offset_bytes = 0;
  DType dtype = DType::f32;
  Layout layout = Layout::plain;
  bool operator==(const NpuPort&) const = default;
};

/// One layer of a command stream, for reports.
struct NpuLayer {
  std::string node;
  std::string op;
  int64_t first_word = 0;
  int64_t last_word = 0;  // one past the last
  int64_t cycles = 0;
  int64_t dma_bytes = 0;
  int64_t macs = 0;
  bool operator==(const NpuLayer&) const = default;
};

/// The command stream for one value of every symbol.
struct NpuVariant {
  Bindings bindings;
  int64_t words_offset_bytes = 0;  // in the blob: 64-bit words, little-endian
  int64_t word_count = 0;
  int64_t image_offset_bytes = 0;  // in the blob: the constants, the device's read-only region
  int64_t image_bytes = 0;
  int64_t dram_bytes = 0;  // of the arena, the region that ports lie in
  int64_t sram_peak_bytes = 0;
  int64_t cycles = 0;
  std::vector<NpuPort> inputs;  // in the order of the subprogram's inputs
  std::vector<NpuPort> outputs;
  std::vector<NpuLayer> layers;
  bool operator==(const NpuVariant&) const = default;
};

struct NpuCode {
  std::string spec_json;
  std::vector<NpuVariant> variants;
  /// Not empty: runs along this symbol are independent, so that a run may be made of runs of compiled sizes.
  std::string batch_symbol;
  bool operator==(const NpuCode&) const = default;
};

/// A graph as IR text with its constants, for a process that has the operators' meanings.
struct ReferenceCode {
  int64_t text_offset_bytes = 0;  // in the blob
  int64_t text_bytes = 0;
  bool operator==(const ReferenceCode&) const = default;
};

/// Planned, but not to be run.
struct NullCode {
  bool operator==(const NullCode&) const = default;
};

/// One device visit.
struct Subprogram {
  std::string name;
  std::string device;
  std::string kind;  // cpu, npu, reference, null
  std::vector<int32_t> inputs;
  std::vector<int32_t> outputs;
  std::vector<int32_t> depends_on;  // earlier subprograms
  std::variant<CpuCode, NpuCode, ReferenceCode, NullCode> code;
  bool operator==(const Subprogram&) const = default;
};

/// An input or output of the model.
struct Port {
  std::string name;
  int32_t buffer = -1;
  bool operator==(const Port&) const = default;
};

/// A value that the model keeps from run to run. Its buffers are places for an input and an output that are no ports of
/// the model: a run reads the one and writes the other, and what it wrote is read by the next.
struct State {
  std::string name;
  int32_t input = -1;  // buffers
  int32_t output = -1;
  int64_t offset_bytes = 0;  // of the initial value in the blob, dense
  int64_t size_bytes = 0;
  bool operator==(const State&) const = default;
};

/// Bytes that may be mapped from a file; `owner` keeps them alive.
struct Blob {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

struct Program {
  std::vector<Symbol> symbols;
  std::vector<Buffer> buffers;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<State> states;
  std::vector<Subprogram> subprograms;  // in run order
  Blob weights;
  std::string report_json = "{}";
  std::string target_json = "{}";
  std::string hetnn_version;
};

}  // namespace hetnn::program
