// Elementwise functions of two quantized i8 values: of the reals that they stand for, in f32, rounded once, a stretch
// in the first-level cache at a time.
#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/block_ops.h"
#include "hetnn/kernels/elementwise/elementwise.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/quant/rows.h"
#include "hetnn/kernels/quant/tables.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSerialBelow = 8192;
constexpr int64_t kTileElems = 16384;
constexpr int64_t kStretch = 1024;

struct Scale {
  float scale = 1;
  int32_t zero = 0;
};

Scale scale_of(const KernelCall& call, std::string_view value) {
  const std::string scales = text(value, ".scales"), zeros = text(value, ".zeros");
  return {static_cast<float>(call.params.reals(scales)[0]), static_cast<int32_t>(call.params.integers(zeros)[0])};
}

class IntegerBinary final : public Kernel {
 public:
  IntegerBinary(const KernelCall& call, ops::Function function)
      : y_(scale_of(call, "y")), function_(block_function(function)) {
    const TensorView& y = call.outputs[0];
    std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "binary_i8: the output")};
    const ops::OpDef& op = ops::OpTable::global().get(call.params.text("operator"));
    for (size_t k = 0; k < 2; ++k) {
      operands.push_back(broadcast_operand(call.inputs[k], y.shape(), text("binary_i8: input ", k)));
      operands_[k] = scale_of(call, op.inputs[k].name);
    }
    nest_ = Nest(y.shape(), std::move(operands));
    const std::vector<double> values = call.params.reals("values", {});
    if (!values.empty()) c0_ = static_cast<float>(values[0]);
    if (values.size() > 1) c1_ = static_cast<float>(values[1]);
    if (call.params.has("q_rounding")) table_ = table_of(call);
    if (function != ops::Function::add || !table_.empty()) return;
    sum_ = {operands_[0].scale, operands_[1].scale, y_.scale, operands_[0].zero, operands_[1].zero, y_.zero};
    sum_.choose();
  }

  bool serial() const override { return nest_.elems() < kSerialBelow; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const QuantRows& rows = quant_rows();
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      alignas(64) float reals[2][kStretch];
      int8_t room[kStretch];
      const int64_t step = nest_.col_stride(0);
      if (sum_.run != nullptr && step == 1 && nest_.col_stride(1) == 1 && nest_.col_stride(2) == 1) {
        return sum_.run(sum_, {.a = reinterpret_cast<const int8_t*>(inputs[0]) + tile.offsets[1],
                               .b = reinterpret_cast<const int8_t*>(inputs[1]) + tile.offsets[2],
                               .y = reinterpret_cast<int8_t*>(outputs[0]) + tile.offsets[0],
                               .ld_a = nest_.row_stride(1),
                               .ld_b = nest_.row_stride(2),
                               .ld_y = nest_.row_stride(0),
                               .rows = tile.rows,
                               .n = tile.cols});
      }
      for (int64_t r = 0; r < tile.rows; ++r) {
        for (int64_t c = 0; c < tile.cols; c += kStretch) {
          const int64_t n = std::min(kStretch, tile.cols - c);
          const auto at = [&](size_t k) { return tile.offsets[k] + r * nest_.row_stride(k) + c * nest_.col_stride(k); };
          if (!table_.empty()) {
            const auto* a = reinterpret_cast<const int8_t*>(inputs[0]) + at(1);
            const auto* b = reinterpret_cast<const int8_t*>(inputs[1]) + at(2);
            auto* y = reinterpret_cast<int8_t*>(outputs[0]) + at(0);
            const int64_t da = nest_.col_stride(1), db = nest_.col_stride(2);
            for (int64_t i = 0; i < n; ++i)
              y[i * step] = table_[static_cast<size_t>((a[i * da] + 128) * 256 + b[i * db] + 128)];
            continue;
          }
          for (size_t k = 0; k < 2; ++k) {
            const auto* x = reinterpret_cast<const int8_t*>(inputs[k]) + at(k + 1);
            const int64_t dx = nest_.col_stride(k + 1);
            for (int64_t i = 0; dx != 1 && i < n; ++i) room[i] = x[i * dx];
            rows.to_reals(dx == 1 ? x : room, n, operands_[k].scale, operands_[k].zero, reals[k]);
          }
          Block block{reals[0], n, reals[0], n, 1, n};
          block.operand = reals[1];
          block.col_step = 1;
          block.c0 = c0_;
          block.c1 = c1_;
          function_(block);
          int8_t* y = reinterpret_cast<int8_t*>(outputs[0]) + at(0);
          rows.to_integers(reals[0], n, y_.scale, y_.zero, step == 1 ? y : room);
          for (int64_t i = 0; step != 1 && i < n; ++i) y[i * step] = room[i];
        }
      }
    });
  }

 private:
  Scale operands_[2], y_;
  BlockFunction function_;
  float c0_ = 0, c1_ = 0;
  std::vector<int8_t> table_;  // of pairs, where the call names a rounding
  ByteSum sum_{};              // of sums
  Nest nest_;
};

}  // namespace

Refusal serves_integer_binary(const KernelCall& call) {
  return Terms("binary_i8", call)
      .of(DType::i8, 2)
      .hold(refuse_scales(call))
      .hold(call.params.text("op") != "prelu", "has no slopes along an axis");
}

std::unique_ptr<Kernel> make_integer_binary(const KernelCall& call) {
  const ops::Function function = *ops::function_from_name(call.params.text("op"));
  return std::make_unique<IntegerBinary>(call, function);
}

}  // namespace hetnn::kernels
