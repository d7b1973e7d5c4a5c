// Comparisons: a tile is one run for each operand, as it lies or gathered.
#include "hetnn/kernels/elementwise/compare.h"

#include <algorithm>
#include <cstring>

#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/elementwise/compare_ops.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSerialBelow = 16384;  // elements
constexpr int64_t kTileElems = 2048;
constexpr int64_t kLongRow = 512;  // is a tile of its own, which needs no gathering where the rows alone lie evenly
constexpr int64_t kWidest = 8;     // bytes of an element

/// An operand of the elements of one tile, one after another, or one block that stands for all of them.
struct Run {
  const std::byte* at;
  bool advances;
};

template <typename T>
void gather(const Nest& nest, const Nest::Tile& tile, size_t operand, const T* from, T* to) {
  const int64_t step = nest.col_stride(operand);
  for (int64_t r = 0; r < tile.rows; ++r, from += nest.row_stride(operand), to += tile.cols) {
    if (step == 1) {
      std::copy_n(from, tile.cols, to);
    } else if (step == 0) {
      std::fill_n(to, tile.cols, *from);
    } else {
      for (int64_t c = 0; c < tile.cols; ++c) to[c] = from[c * step];
    }
  }
}

// Whether the elements of the operand lie one after another, all rows of the tile; `step` 0: are one element.
bool lies_evenly(const Nest& nest, const Nest::Tile& tile, size_t operand, int64_t step) {
  return nest.col_stride(operand) == step && (tile.rows == 1 || nest.row_stride(operand) == step * tile.cols);
}

class Compare final : public Kernel {
 public:
  explicit Compare(const KernelCall& call)
      : dtype_(call.inputs[0].dtype),
        bytes_(dtype_bytes(dtype_)),
        function_(compare_function(*ops::predicate_from_name(call.params.text("op")), dtype_)),
        operands_(call.inputs.size()) {
    const TensorView& y = call.outputs[0];
    std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "compare: the output")};
    for (size_t k = 0; k < operands_; ++k)
      operands.push_back(broadcast_operand(call.inputs[k], y.shape(), text("compare: input ", k)));
    nest_ = Nest(y.shape(), std::move(operands));
    tile_elems_ = nest_.cols() >= kLongRow ? std::min(nest_.cols(), kTileElems) : kTileElems;
  }

  bool serial() const override { return nest_.elems() < kSerialBelow; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    alignas(64) std::byte gathered[2][kTileElems * kWidest];
    alignas(64) uint8_t results[kTileElems];
    nest_.for_tiles(context.thread, context.threads, tile_elems_, [&](const Nest::Tile& tile) {
      const Run a = operand(tile, 0, inputs, gathered[0]);
      const Run b = operands_ == 1 ? a : operand(tile, 1, inputs, gathered[1]);
      uint8_t* y = reinterpret_cast<uint8_t*>(outputs[0]) + tile.offsets[0];
      const bool dense = lies_evenly(nest_, tile, 0, 1);
      compare(a, b, tile.rows * tile.cols, dense ? y : results);
      if (dense) return;
      const uint8_t* from = results;
      for (int64_t r = 0; r < tile.rows; ++r, from += tile.cols)
        for (int64_t c = 0; c < tile.cols; ++c) y[r * nest_.row_stride(0) + c * nest_.col_stride(0)] = from[c];
    });
  }

 private:
  Run operand(const Nest::Tile& tile, size_t k, const std::byte* const* inputs, std::byte* memory) const {
    const size_t at = k + 1;
    const std::byte* from = inputs[k] + tile.offsets[at] * bytes_;
    if (lies_evenly(nest_, tile, at, 1)) return {from, true};
    const bool one = lies_evenly(nest_, tile, at, 0);
    visit_width(dtype_, [&]<typename T>(T) {
      const auto* elements = reinterpret_cast<const T*>(from);
      auto* to = reinterpret_cast<T*>(memory);
      one ? static_cast<void>(std::fill_n(to, kCompareBlock, *elements)) : gather(nest_, tile, at, elements, to);
    });
    return {memory, !one};
  }

  // What is behind the last whole block is compared in a block of its own.
  void compare(const Run& a, const Run& b, int64_t n, uint8_t* y) const {
    const int64_t whole = n / kCompareBlock * kCompareBlock, rest = n - whole;
    function_({a.at, b.at, a.advances, b.advances, y, whole});
    if (rest == 0) return;
    alignas(64) std::byte last[2][kCompareBlock * kWidest] = {};
    alignas(64) uint8_t results[kCompareBlock];
    const auto padded = [&](const Run& run, std::byte* memory) -> const std::byte* {
      if (!run.advances) return run.at;
      std::memcpy(memory, run.at + whole * bytes_, static_cast<size_t>(rest * bytes_));
      return memory;
    };
    function_({padded(a, last[0]), padded(b, last[1]), false, false, results, kCompareBlock});
    std::memcpy(y + whole, results, static_cast<size_t>(rest));
  }

  DType dtype_;
  int64_t bytes_;
  CompareFunction function_;
  size_t operands_;
  Nest nest_;
  int64_t tile_elems_;
};

}  // namespace

Refusal serves_compare(const KernelCall& call) {
  const std::string op = call.params.text("op");
  const DType dtype = call.inputs[0].dtype;
  const std::optional<ops::Predicate> predicate = ops::predicate_from_name(op);
  Terms terms("compare", call);
  terms.hold(predicate && compare_function(*predicate, dtype), "takes no ", op, " of ", dtype_name(dtype));
  for (const TensorView& input : call.inputs) terms.is(input, dtype, "an operand");
  for (const std::string_view name : {"a", "b", "x"})
    terms.hold(!call.params.has(text(name, ".scales")), "takes values as they stand; got quantized ones as ", name);
  return terms.is(call.outputs[0], DType::boolean, "the result");
}

std::unique_ptr<Kernel> make_compare(const KernelCall& call) { return std::make_unique<Compare>(call); }

}  // namespace hetnn::kernels
