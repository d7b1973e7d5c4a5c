// The executable format as plain data: buffers, subprograms, weights. The compiler writes it, the runtime runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/base/dtype.h"
#include "hetnn/base/layout.h"
#include "hetnn/ops/type.h"
#include "hetnn/program/weights.h"

namespace hetnn::program {

enum class Place : uint8_t { input, output, arena, constant };

/// Memory of one value in one layout.
struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;  // logical, channels first; of a packed constant the unpacked weight's
  std::optional<ops::Quant> quant = std::nullopt;
  Layout layout = Layout::plain;
  Dim pitch = 0;       // elements between pixels; nhwc only
  Shape strides = {};  // in elements, one an axis; strided only
  Place place = Place::arena;
  /// Constants: where their bytes stand in the weights, 64-byte aligned.
  int64_t offset_bytes = 0;
  int64_t size_bytes = 0;
  /// Constants: bytes made by the kernel's pack function.
  bool packed = false;
  bool operator==(const Buffer&) const = default;
};

/// Code for a device: bytes that only the device reads, checks and versions.
struct Code {
  std::string kind;  // of the device
  int64_t version = 0;
  std::vector<std::byte> bytes;

  static Code of_text(std::string kind, int64_t version, std::string_view text);
  /// The bytes as text. InvalidModel naming `called` unless they are of this version.
  std::string_view as_text(int64_t expected_version, const std::string& called) const;
  bool operator==(const Code&) const = default;
};

/// One device visit.
struct Subprogram {
  std::string name;
  std::string device;
  std::vector<int32_t> inputs;  // buffers
  std::vector<int32_t> outputs;
  std::vector<int32_t> depends_on;  // earlier subprograms
  Code code;
  std::vector<std::string> defines = {};  // symbols whose values come out of it: those behind it may need them
  std::optional<Code> fallback = {};      // of another device, for sizes that `code` does not serve
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
  int64_t offset_bytes = 0;  // of the initial value in the weights, dense
  int64_t size_bytes = 0;
  bool operator==(const State&) const = default;
};

/// A text that no run needs: it is held, or it stays in the image that has it and is read there whenever it is asked
/// for.
class TextAside {
 public:
  TextAside(std::string text)
      : text_(std::move(text)) {}               // NOLINT(google-explicit-constructor): it stands for the text
  TextAside(const char* text) : text_(text) {}  // NOLINT(google-explicit-constructor)
  explicit TextAside(std::function<std::string()> read) : read_(std::move(read)) {}

  std::string read() const { return read_ ? read_() : text_; }

 private:
  std::string text_;
  std::function<std::string()> read_;
};

struct Program {
  std::vector<Symbol> symbols;  // of the inputs' shapes, and those that subprograms define
  std::vector<Buffer> buffers;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<State> states;
  std::vector<Subprogram> subprograms;  // in run order
  /// Programs of what calls repeat, each behind those that it runs itself. They read the weights of the program that
  /// holds them, and have neither bodies nor states of their own.
  std::vector<Program> bodies;
  Weights weights;
  /// How the model's own caller passes inputs and gets outputs, as JSON (docs/format.md); empty where as lists.
  std::string signature_json;
  TextAside report_json = "{}";
  std::string target_json = "{}";
  /// The planned graph as IR text, whose large values stand in the weights and in the states; none unless asked for.
  /// Only the compiler reads it.
  std::optional<TextAside> graph_text;
  std::string hetnn_version;
};

}  // namespace hetnn::program
