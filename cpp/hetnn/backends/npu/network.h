// A subgraph as an NPU's layers: what each computes from which maps, and which values share memory.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hetnn/backends/npu/epilogue.h"
#include "hetnn/backends/npu/tile.h"
#include "hetnn/base/layout.h"
#include "hetnn/ir/graph.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"

namespace hetnn::backends::scheduling {

/// A value as rows of pixels: rank 4 as it is, anything else as one image of rows, one column, and channels.
struct Map {
  int64_t n = 1, h = 1, w = 1, c = 1;
  int64_t elems() const { return n * h * w * c; }
  bool operator==(const Map&) const = default;
};
/// As an operand of a larger rank a value has axes of 1 in front.
Map map_of(const ir::Value& value, const Bindings& bindings, int rank = 0);

/// The zero point of a quantized value, else 0.
int64_t zero_of(const ir::Value& value);

/// The stored order of a value: rank 4 as N,H,W,C.
Layout layout_of(const ir::Value& value);

/// Whether some instruction computes the operator with results of a type.
bool has_instruction(const ops::OpDef& op, DType dtype);

/// Why the engines have no form for a node by itself; nothing where they have one.
std::string why_no_layer(const ir::Node& node, const Bindings& bindings);

/// How a layer is computed.
enum class Form : uint8_t {
  product,   // a convolution, or a linear layer as one over rows of one pixel
  matrices,  // a product of two matrices
  pool,      // windows
  pair,      // two maps, or a map and a value a channel, element by element
  unary,     // an activation or a table
  rows,      // a softmax or a normalization of the channels of each pixel
  view,      // nothing to do: the result lies where its operands lie
  concat,    // copies
  slice,
  rearrange,
};

/// What a layer keeps beside its maps, in one buffer: weights, biases and factors between scales; of pairs a row and
/// factors; a table; what rows are computed with.
struct Parameters {
  int64_t begin_second = 0, begin_third = 0;  // biases or factors; factors
  int64_t bytes = 0;
};

/// One layer: a node with what its instructions compute besides (epilogue.h).
struct Layer {
  std::vector<const ir::Node*> nodes;
  Epilogue epilogue;
  Form form = Form::view;
  DType dtype = DType::f32;
  int64_t elem = 4;  // bytes of an element
  /// Maps that it reads, the first operand first, an addend last.
  std::vector<const ir::Value*> inputs;
  const ir::Value* output = nullptr;
  Map in, out;                           // of the first operand and of the result
  ProductShape product;                  // of form product and matrices
  ops::Window window = ops::Window(2);   // of product and pool
  std::optional<npu::ElementwiseOp> op;  // of form pair
  const ir::Value* row = nullptr;        // of form pair: the operand with one value a channel

  const ir::Node& node() const { return *nodes.front(); }
  /// Whether it can be computed row by row of its result, from rows of its operands.
  bool streams = false;
  npu::Engine engine() const;
  /// The rows of an input that `count` rows of the result from `first` on read.
  Span rows_read(size_t input, int64_t first, int64_t count) const;
  /// Cycles of its engine for so many rows of the result, at full width.
  int64_t cycles(const npu::Spec& spec, int64_t rows) const;
  /// How its factors round: as the model states, else as the machine does by itself.
  Rounding rounding(const npu::Spec& spec) const;
  /// With all filters and channels at once.
  Parameters parameters() const;
  /// The addend among the inputs.
  const ir::Value* addend() const { return epilogue.addend; }
};

/// Memory of one value, or of several that share it.
struct Storage {
  const ir::Value* value = nullptr;  // the whole
  int64_t bytes = 0;
  bool is_constant = false, is_port = false;  // of the device's read-only region; an input or output of the subgraph
  size_t first = 0, last = 0;                 // the layers that write it first and read it last
};

/// Maps of one height and width whose channels lie side by side.
struct Frame {
  const ir::Value* value = nullptr;  // the whole
  size_t storage = 0;
  Map map;
  int64_t pixel_bytes = 0;
};

/// Where a value lies in its frame.
struct Part {
  size_t frame = 0;
  int64_t offset_bytes = 0;  // of its first channel in a pixel
  Map map = {};              // its own
};

class Network {
 public:
  /// Of launches, as chains_of gives them, and the values that leave and enter. Throws Unsupported naming the node for
  /// which the engines have no form.
  Network(const std::vector<std::vector<const ir::Node*>>& chains, std::set<const ir::Value*> outputs,
          std::span<const ir::Value* const> inputs, const Bindings& bindings);
  /// Of one layer by itself.
  Network(std::span<const ir::Node* const> chain, const Epilogue& epilogue, const Bindings& bindings);

  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<Storage>& storages() const { return storages_; }
  const std::vector<Frame>& frames() const { return frames_; }
  const Part& part(const ir::Value& value) const { return parts_.at(&value); }
  const Frame& frame(const ir::Value& value) const { return frames_[part(value).frame]; }
  const Storage& storage(const ir::Value& value) const { return storages_[frame(value).storage]; }
  bool is_written(const ir::Value& value) const { return writer_.contains(&value); }
  bool is_output(const ir::Value& value) const { return outputs_.contains(&value); }
  const Map& map(const ir::Value& value) const { return part(value).map; }
  const Bindings& bindings() const { return bindings_; }
  /// All that a schedule can depend on: networks of one outline have the same schedules.
  std::vector<int64_t> outline() const;

 private:
  void add_layer(std::span<const ir::Node* const> chain, const Epilogue& epilogue);
  void share(std::span<const ir::Value* const> inputs);
  bool reads_pitched(const ir::Value& value) const;
  bool takes_pitched(const ir::Value& value) const;
  void give_storage(const ir::Value& value);
  void live();

  const Bindings bindings_;
  std::vector<Layer> layers_;
  std::vector<Storage> storages_;
  std::vector<Frame> frames_;
  std::unordered_map<const ir::Value*, Part> parts_;
  std::unordered_map<const ir::Value*, std::vector<size_t>> readers_;  // layers
  std::unordered_map<const ir::Value*, size_t> writer_;
  std::set<const ir::Value*> outputs_;
};

}  // namespace hetnn::backends::scheduling
