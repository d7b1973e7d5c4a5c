// Functions of integers' bits: a row of a tile at a time, by their formulas.
#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/elementwise/compare.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/ops/elementwise/formula.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSerialBelow = 8192;
constexpr int64_t kTileElems = 16384;

/// Elements of a row, `step` of them apart.
struct Row {
  std::byte* at;
  int64_t step;
};

using RowFunction = void (*)(const Row& x, const Row& y, const Row& out, int64_t count);

template <typename V, V (*kFormula)(V, V)>
void run_row(const Row& x, const Row& y, const Row& out, int64_t count) {
  const auto *a = reinterpret_cast<const V*>(x.at), *b = reinterpret_cast<const V*>(y.at);
  auto* to = reinterpret_cast<V*>(out.at);
  for (int64_t k = 0; k < count; ++k) to[k * out.step] = kFormula(a[k * x.step], b[k * y.step]);
}

template <typename V>
RowFunction function_of_type(ops::Bits bits) {
  static constexpr RowFunction kFunctions[] = {
#define HETNN_BITS(name, ...) run_row<V, ops::formula::Of<V>::name>,
#include "hetnn/ops/elementwise/formulas.inc"
  };
  return kFunctions[static_cast<size_t>(bits)];
}

// Null for reals.
RowFunction row_function(ops::Bits bits, DType dtype) {
  return visit_dtype(dtype, [&]<typename V>(V) -> RowFunction {
    if constexpr (std::is_integral_v<V>) {
      return function_of_type<V>(bits);
    } else {
      return nullptr;
    }
  });
}

class BitsKernel final : public Kernel {
 public:
  explicit BitsKernel(const KernelCall& call)
      : bytes_(dtype_bytes(call.inputs[0].dtype)),
        last_(call.inputs.size()),
        function_(row_function(*ops::bits_from_name(call.params.text("op")), call.inputs[0].dtype)) {
    const TensorView& y = call.outputs[0];
    std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "bits: the output")};
    for (size_t k = 0; k < last_; ++k)
      operands.push_back(broadcast_operand(call.inputs[k], y.shape(), text("bits: input ", k)));
    nest_ = Nest(y.shape(), std::move(operands));
  }

  bool serial() const override { return nest_.elems() < kSerialBelow; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        const auto row = [&](size_t k, const std::byte* from) {
          return Row{const_cast<std::byte*>(from) + (tile.offsets[k] + r * nest_.row_stride(k)) * bytes_,
                     nest_.col_stride(k)};
        };
        function_(row(1, inputs[0]), row(last_, inputs[last_ - 1]), row(0, outputs[0]), tile.cols);
      }
    });
  }

 private:
  int64_t bytes_;
  size_t last_;
  RowFunction function_;
  Nest nest_;
};

}  // namespace

Refusal serves_bits(const KernelCall& call) {
  const std::string op = call.params.text("op");
  const DType dtype = call.inputs[0].dtype;
  const std::optional<ops::Bits> bits = ops::bits_from_name(op);
  Terms terms("bits", call);
  terms.hold(bits && row_function(*bits, dtype), "takes no ", op, " of ", dtype_name(dtype));
  for (const TensorView& input : call.inputs) terms.is(input, dtype, "an operand");
  return terms.is(call.outputs[0], dtype, "the result");
}

std::unique_ptr<Kernel> make_bits(const KernelCall& call) { return std::make_unique<BitsKernel>(call); }

}  // namespace hetnn::kernels
