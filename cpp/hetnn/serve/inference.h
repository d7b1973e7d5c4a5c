// One inference as clients ask for it, without a socket: its tensors, what it wants back, and what the network makes of
// it. Both forms of the protocol, HTTP's and gRPC's, are read into it and written from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/base/tensor.h"
#include "hetnn/program/program.h"

namespace hetnn::serve {

/// What the protocol calls texts. A network has two ports for them, the bytes of all and a span for each
/// (docs/format.md), of which clients see one.
inline constexpr std::string_view kTexts = "BYTES";
/// As much of a client's name for something as messages show.
std::string short_name(std::string_view name);

/// Bytes of a request, and what keeps them alive.
struct Bytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> data;
  Bytes part(size_t begin, size_t size) const { return {owner, data.subspan(begin, size)}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data.data()), data.size()}; }
};

/// Where a tensor lies in a region of shared memory that clients registered.
struct SharedSpan {
  std::string region;
  int64_t offset = 0;
  int64_t bytes = 0;
};
inline constexpr std::string_view kRegion = "shared_memory_region", kOffset = "shared_memory_offset",
                                  kBytes = "shared_memory_byte_size";

/// A tensor that a request brings, or names a place for.
struct Given {
  std::string name;
  std::optional<DType> dtype;  // none: texts
  std::vector<int64_t> shape;
  int64_t elems = 0;
  Tensor tensor;  // of texts their bytes
  Tensor spans;   // of texts
  std::optional<SharedSpan> shared;

  std::string called() const;  // in messages
  std::string_view datatype() const;
};

/// An output that a request asks for.
struct Wanted {
  std::string name;
  bool binary = false;
  std::optional<SharedSpan> shared;
};

struct Inference {
  std::string model, version, id;
  std::vector<Given> inputs;
  std::vector<Wanted> outputs;  // none: all
  bool binary = false;          // outputs that are not named come as raw bytes
  std::string sequence;         // empty: it belongs to none
  bool sequence_is_number = false;
  bool sequence_start = false, sequence_end = false;
  int64_t priority = 0;
  int64_t timeout_us = 0;

  /// The input's values, which lay in shared memory.
  void give(size_t input, Bytes bytes);
  std::string sequence_called() const;  // in messages
};

// What both forms have in common when they are read. All throw InvalidModel with what was found and what was expected.

/// The value of a parameter; nothing stands for what is neither a truth, a number nor a text, as `found` says.
struct Parameter {
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string> value;
  std::string_view found = "null";
};
using Parameters = std::vector<std::pair<std::string, Parameter>>;

/// Takes the parameters that the protocol knows; others are the client's own and mean nothing here.
void take_parameters(const Parameters& parameters, Inference& to);
/// The place that parameters name, if they do.
std::optional<SharedSpan> place_of(const Parameters& parameters, std::string_view called);
/// An integer that is not negative.
int64_t size_of(const Parameter& parameter, std::string_view called);
/// An input without its values.
Given given(std::string name, std::string_view datatype, std::vector<int64_t> shape);
/// Unsupported where it asks for classes.
Wanted wanted(std::string name, const Parameters& parameters, bool binary);
/// Gives it the values that lie in `bytes`, row by row, little-endian; where they lie if they are aligned. A text is
/// its length, as u32, and its bytes.
void take_raw(Given& given, const Bytes& bytes);
/// Values that are written out are of another kind.
[[noreturn]] void refuse_values(const Given& given, std::string_view kind);
/// Whether every character has its shortest form and none is half of a pair.
bool is_utf8(std::string_view text);

/// A tensor of values that are written out, one by one. Nothing is rounded or cast but numbers to floats.
class WrittenValues {
 public:
  /// Unsupported for types that have no written form. The memory is that of the shape, and all zero.
  explicit WrittenValues(const Given& given);
  void add(bool value);
  void add(int64_t value);
  void add(uint64_t value);
  void add(double value);
  /// Once there are as many as the shape takes.
  Tensor take();

 private:
  template <typename T>
  void put(T value);
  template <typename Written>
  void add_integer(Written value);
  void real(double value);
  std::byte* next();

  const Given& given_;
  const DType dtype_;
  const int64_t step_;
  Tensor tensor_;
  std::byte* data_ = nullptr;
  int64_t count_ = 0;
};

/// Texts, one by one, as a network takes them. InvalidModel for 2^31 bytes or more.
class WrittenTexts {
 public:
  /// The memory is that of the shape.
  explicit WrittenTexts(const Given& given);
  void add(std::string_view text);
  /// Once there are as many as the shape takes.
  void give(Given& to);

 private:
  const Given& given_;
  std::string bytes_;
  std::vector<int64_t> spans_;
};

// What a network makes of it.

/// Names and types of a network's inputs and outputs as clients see them.
struct Signature {
  struct Port {
    std::string name;
    std::optional<DType> dtype;  // none: texts
    size_t port = 0;             // of the network: the values, or the texts' bytes
    std::optional<size_t> spans = {};
  };
  std::string network;
  std::vector<Port> inputs, outputs;
};
/// Unsupported where the protocol has no name for a type.
Signature signature_of(std::string network, const program::Program& program);

/// An output that is wanted, and where it is among all of the network's, which the functions take.
struct Asked {
  size_t port = 0;
  std::optional<size_t> spans;
  Wanted wanted;

  std::string_view datatype(std::span<const Tensor> outputs) const;
  const std::vector<int64_t>& shape(std::span<const Tensor> outputs) const;
  /// Of texts: each one's. InvalidModel where the network gives spans outside the bytes.
  std::vector<std::string_view> texts(std::span<const Tensor> outputs) const;
  /// Of texts: each one's length, as u32, and its bytes.
  std::string raw_texts(std::span<const Tensor> outputs) const;
};

/// The inputs in the network's order, and which of its outputs are wanted, in the order asked for.
struct Bound {
  std::vector<Tensor> inputs;
  std::vector<Asked> outputs;
  int64_t rows = 1;  // first size of the inputs
};
Bound bind(const Inference& inference, const Signature& signature);

/// An answer's bytes: texts, and behind each the values of one output or none.
struct Written {
  struct Piece {
    std::string text;
    std::span<const std::byte> values;
  };
  std::vector<Piece> pieces;
  std::optional<int64_t> head_bytes;  // of the JSON before raw tensors, where there are any
};

}  // namespace hetnn::serve
