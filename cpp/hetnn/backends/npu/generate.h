// Command streams for layers: tiles, transfers and engine instructions; tokens follow from them (npu/order.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hetnn/backends/npu/epilogue.h"
#include "hetnn/backends/npu/tile.h"
#include "hetnn/base/layout.h"
#include "hetnn/ir/graph.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"

namespace hetnn::backends::npu {

/// Where a layer's operand stands in DRAM: dense, feature maps as N,H,W,C, all else row-major.
struct Place {
  hetnn::npu::Region region = hetnn::npu::Region::arena;
  int64_t offset_bytes = 0;
};

/// Of one layer: more would take longer to plan than a model is worth.
inline constexpr size_t kMostInstructions = size_t{1} << 18;

/// Where operands may begin in the scratchpad, and the first such place from `bytes` on.
inline constexpr int64_t kAlignment = 64;
static_assert(kAlignment == hetnn::npu::kConstantAlignment);
constexpr int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
/// Bytes of a factor between scales: multiplier and shift.
inline constexpr int64_t kFactorBytes = 8;

/// The zero point of a quantized value, else 0.
int64_t zero_of(const ir::Value& value);

/// The stored order of a value: rank 4 as N,H,W,C.
Layout layout_of(const ir::Value& value);

/// Whether some instruction computes the operator with results of a type.
bool has_instruction(const ops::OpDef& op, DType dtype);

/// Keeps a constant for the device, and returns where it begins in the device's read-only region.
using KeepConstant = std::function<int64_t(const Tensor&)>;

/// Collects the instructions of one stream.
class Generator {
 public:
  /// Without `keep` no constant is packed: enough to time a layer.
  /// `packed_for`: sizes for which weights are packed, so that streams for other sizes share them; null: for these.
  Generator(const hetnn::npu::Spec& spec, const Bindings& bindings, KeepConstant keep = nullptr,
            const Bindings* packed_for = nullptr)
      : spec_(spec), bindings_(bindings), packed_for_(packed_for), keep_(std::move(keep)) {}

  /// Code for `node` with `epilogue`, as epilogue_of gives it; what comes out of that is stored at the place of the
  /// node's output. Throws Unsupported when the engines cannot say it and DoesNotFit when no tile fits the scratchpad;
  /// both name the node and the reason.
  void layer(const ir::Node& node, const Epilogue& epilogue, const std::map<const ir::Value*, Place>& places);

  const std::vector<hetnn::npu::Instruction>& instructions() const { return code_; }
  std::vector<hetnn::npu::Instruction>& instructions() { return code_; }

 private:
  // A value as rows of pixels: rank 4 as it is, anything else as one image of rows, one column, and channels;
  // as an operand of a larger rank, with axes of 1 in front.
  struct Map {
    int64_t n = 1, h = 1, w = 1, c = 1;
    int64_t elems() const { return n * h * w * c; }
  };
  Map map_of(const ir::Value& value, int rank = 0) const;
  std::vector<int64_t> stored_shape(const ir::Value& value) const;

  void emit(const ir::Node& node, const Epilogue& epilogue);
  void conv(const ir::Node& node, const Epilogue& epilogue);
  ProductShape shape_of(const ir::Node& node, const Epilogue& epilogue) const;
  std::optional<Tile> tile_of(const ir::Node& node, const Epilogue& epilogue, const ProductShape& shape,
                              int64_t& needed_bytes) const;
  void products(const ir::Node& node, const Epilogue& epilogue, const ProductShape& shape, const Tensor& weight);
  void pool(const ir::Node& node);
  void elementwise(const ir::Node& node, hetnn::npu::ElementwiseOp op, const Epilogue& epilogue);
  void activation(const ir::Node& node, const Epilogue& activation);
  void matmul(const ir::Node& node, const Epilogue& epilogue);
  void concat(const ir::Node& node);
  void slice(const ir::Node& node);
  void rearrange(const ir::Node& node);
  /// One piece of it: `count` of the first axis from `first`, or all of it when not `part`.
  void rearrange_rows(const ir::Node& node, bool part, int64_t first, int64_t count);
  /// A nest of copies inside the scratchpad: bytes between neighbours of each axis.
  struct Loops {
    std::vector<int64_t> extents, from, to;
  };
  void move(const Loops& loops, int64_t here, int64_t there);

  Place place_of(const ir::Value& value);
  Place constant(const Tensor& stored);
  /// Factors between scales, as the engines read them.
  Place factors(const ir::Node& node, std::span<const double> reals);
  /// Those of a product's accumulators: one for each of `count` filters or columns.
  Place product_factors(const ir::Node& node, int64_t count);
  Place elementwise_factors(const ir::Node& node, const ir::Value& a, const ir::Value& b, hetnn::npu::ElementwiseOp op);
  void refuse_empty(const ir::Node& node) const;
  /// Unsupported unless the result is quantized as the inputs are.
  void keeps_scale(const ir::Node& node) const;
  /// Bias in the type of the sums: f32 for f16.
  Place bias_of(const ir::Node& node);
  int64_t pack_filters(const Tensor& weight, int64_t block, int64_t channels);
  /// Runs in DRAM, which lie dense in the scratchpad: `size2` groups of `size1` runs of `size0` bytes.
  struct Box {
    int64_t size0 = 0, size1 = 1, size2 = 1, stride1 = 0, stride2 = 0;
  };
  static Box joined(Box box);
  /// Rows and columns of all or some channels of a feature map of so many columns and channels.
  Box box_of(int64_t rows, int64_t columns, int64_t channels, int64_t all_columns, int64_t all_channels) const;
  template <typename Transfer>
  void transfer(const Place& place, int64_t sram, Box box);
  void load(const Place& from, int64_t sram, int64_t bytes) { load(from, sram, Box{.size0 = bytes}); }
  void load(const Place& from, int64_t sram, Box box);
  void store(int64_t sram, const Place& to, int64_t bytes) { store(sram, to, Box{.size0 = bytes}); }
  void store(int64_t sram, const Place& to, Box box);
  /// Steps that load, compute and store. Where they overlap, the next step is loaded while one computes, so
  /// what it loads must lie elsewhere; what a step stores is stored before the one after the next is loaded.
  struct Steps {
    int64_t count = 0;
    bool overlap = false;
    std::function<void(int64_t)> load, compute, store;
  };
  void run(const Steps& steps);
  /// Rows of `row_bytes` through the vector engine, `operands` of them and a result beside `kept_bytes`.
  struct Rows {
    int64_t tile = 0, operand_bytes = 0, buffers = 1;
  };
  Rows rows_of(const ir::Node& node, int64_t rows, int64_t row_bytes, int64_t operands, int64_t kept_bytes,
               double cycles_each) const;
  /// One more of the layer; throws DoesNotFit beyond kMostInstructions.
  void add(const hetnn::npu::Instruction& instruction);
  [[noreturn]] void too_long(const ir::Node& node) const;
  [[noreturn]] void does_not_fit(const ir::Node& node, int64_t needed_bytes) const;

  const hetnn::npu::Spec& spec_;
  const Bindings& bindings_;
  const Bindings* const packed_for_;
  const KeepConstant keep_;
  const std::map<const ir::Value*, Place>* places_ = nullptr;
  const ir::Node* node_ = nullptr;  // whose layer it is, and where that begins
  size_t begin_ = 0;
  DType dtype_ = DType::f32;  // of the layer, and its bytes
  int64_t elem_ = 4;
  std::vector<hetnn::npu::Instruction> code_;
  std::map<const ir::Value*, Place> loaded_constants_;
};

}  // namespace hetnn::backends::npu
