// Comparisons: a tile is one run for each operand, as it lies or gathered.
#include "hetnn/kernels/elementwise/compare.h"

#include <algorithm>

#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/elementwise/compare_ops.h"
#include "hetnn/kernels/elementwise/steps.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSerialBelow = 16384;  // elements
constexpr int64_t kLongRow = 512;  // is a tile of its own, which needs no gathering where the rows alone lie evenly
constexpr int64_t kWidest = 8;     // bytes of an element

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
        operands_(static_cast<size_t>(ops::operands_of(*ops::predicate_from_name(call.params.text("op"))))),
        written_(call.outputs[0].dtype) {
    ElementwiseBuilder builder(call, "compare");
    for (size_t k = 0; k < operands_; ++k) builder.add_operand(static_cast<int>(k));
    builder.add_steps();
    nest_ = builder.nest();
    steps_ = builder.steps();
    tile_elems_ = nest_.cols() >= kLongRow ? std::min(nest_.cols(), kTileElems) : kTileElems;
  }

  bool serial() const override { return nest_.elems() < kSerialBelow; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    alignas(64) std::byte gathered[2][kTileElems * kWidest];
    alignas(64) uint8_t results[kTileElems];
    nest_.for_tiles(context.thread, context.threads, tile_elems_, [&](const Nest::Tile& tile) {
      const ComparedRun a = operand(tile, 0, inputs, gathered[0]);
      const ComparedRun b = operands_ == 1 ? a : operand(tile, 1, inputs, gathered[1]);
      const int64_t n = tile.rows * tile.cols;
      if (!steps_.empty()) {
        compare_runs(function_, bytes_, a, b, n, results);
        return run_mixed(nest_, tile, steps_, inputs, {nullptr, results, tile.cols}, written_, outputs[0]);
      }
      uint8_t* y = reinterpret_cast<uint8_t*>(outputs[0]) + tile.offsets[0];
      const bool dense = lies_evenly(nest_, tile, 0, 1);
      compare_runs(function_, bytes_, a, b, n, dense ? y : results);
      if (dense) return;
      const uint8_t* from = results;
      for (int64_t r = 0; r < tile.rows; ++r, from += tile.cols)
        for (int64_t c = 0; c < tile.cols; ++c) y[r * nest_.row_stride(0) + c * nest_.col_stride(0)] = from[c];
    });
  }

 private:
  ComparedRun operand(const Nest::Tile& tile, size_t k, const std::byte* const* inputs, std::byte* memory) const {
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

  DType dtype_;
  int64_t bytes_;
  CompareFunction function_;
  size_t operands_;
  DType written_;
  Nest nest_;
  ElementwiseSteps steps_;
  int64_t tile_elems_;
};

}  // namespace

Refusal serves_compare(const KernelCall& call) {
  const std::string op = call.params.text("op");
  const DType dtype = call.inputs[0].dtype;
  const std::optional<ops::Predicate> predicate = ops::predicate_from_name(op);
  Terms terms("compare", call);
  terms.hold(predicate && compare_function(*predicate, dtype), "takes no ", op, " of ", dtype_name(dtype));
  if (!terms.met()) return terms;
  terms.reads(dtype, static_cast<size_t>(ops::operands_of(*predicate)));
  for (const std::string_view name : {"a", "b", "x"})
    terms.hold(!call.params.has(text(name, ".scales")), "takes values as they stand; got quantized ones as ", name);
  return terms.writes_behind_steps(DType::boolean).steps_on_tiles();
}

std::unique_ptr<Kernel> make_compare(const KernelCall& call) { return std::make_unique<Compare>(call); }

}  // namespace hetnn::kernels
