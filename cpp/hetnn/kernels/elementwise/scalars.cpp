// Functions of numbers that have no lanes, by their formulas: of integers' bits, and of f64. A row of a tile at a time.
#include "hetnn/base/visit_dtype.h"
#include "hetnn/kernels/elementwise/compare.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/ops/elementwise/formula.h"

namespace hetnn::kernels {
namespace {

/// Elements of a row, `step` of them apart.
struct Row {
  std::byte* at;
  int64_t step;
};

struct Constants {
  double c0, c1;
};

using RowFunction = void (*)(const Row& x, const Row& y, const Row& out, int64_t count, const Constants& constants);

template <typename V, typename F>
void each_of_row(const Row& x, const Row& y, const Row& out, int64_t count, F f) {
  const auto *a = reinterpret_cast<const V*>(x.at), *b = reinterpret_cast<const V*>(y.at);
  auto* to = reinterpret_cast<V*>(out.at);
  for (int64_t k = 0; k < count; ++k) to[k * out.step] = f(a[k * x.step], b[k * y.step]);
}

template <typename V, V (*kFormula)(V, V)>
void run_row(const Row& x, const Row& y, const Row& out, int64_t count, const Constants& /*constants*/) {
  each_of_row<V>(x, y, out, count, kFormula);
}

using Formula = double (*)(double, double, double, double);
template <Formula kFormula>
void run_row_of_doubles(const Row& x, const Row& y, const Row& out, int64_t count, const Constants& c) {
  each_of_row<double>(x, y, out, count, [c](double a, double b) { return kFormula(a, b, c.c0, c.c1); });
}

RowFunction row_function(ops::Function function) {
  static constexpr RowFunction kFunctions[] = {
#define HETNN_FUNCTION(name, ...) run_row_of_doubles<ops::formula::Of<double>::name>,
#include "hetnn/ops/elementwise/formulas.inc"
  };
  return kFunctions[static_cast<size_t>(function)];
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

// How many elements are worth another thread, and how many are handed out at once.
struct Portion {
  int64_t serial_below, tile;
};
constexpr Portion kLight = {8192, 16384}, kDear = {512, 1024};

class Scalars final : public Kernel {
 public:
  Scalars(const KernelCall& call, RowFunction function, const Portion& portion, const Constants& constants)
      : bytes_(dtype_bytes(call.inputs[0].dtype)),
        last_(call.inputs.size()),
        function_(function),
        portion_(portion),
        constants_(constants) {
    const TensorView& y = call.outputs[0];
    std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "the output")};
    for (size_t k = 0; k < last_; ++k)
      operands.push_back(broadcast_operand(call.inputs[k], y.shape(), text("input ", k)));
    nest_ = Nest(y.shape(), std::move(operands));
  }

  bool serial() const override { return nest_.elems() < portion_.serial_below; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    nest_.for_tiles(context.thread, context.threads, portion_.tile, [&](const Nest::Tile& tile) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        const auto row = [&](size_t k, const std::byte* from) {
          return Row{const_cast<std::byte*>(from) + (tile.offsets[k] + r * nest_.row_stride(k)) * bytes_,
                     nest_.col_stride(k)};
        };
        function_(row(1, inputs[0]), row(last_, inputs[last_ - 1]), row(0, outputs[0]), tile.cols, constants_);
      }
    });
  }

 private:
  int64_t bytes_;
  size_t last_;
  RowFunction function_;
  Portion portion_;
  Constants constants_;
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

std::unique_ptr<Kernel> make_bits(const KernelCall& call) {
  const ops::Bits bits = *ops::bits_from_name(call.params.text("op"));
  return std::make_unique<Scalars>(call, row_function(bits, call.inputs[0].dtype), kLight, Constants{});
}

Refusal serves_doubles(const KernelCall& call) {
  const std::optional<ops::Function> function = ops::function_from_name(call.params.text("op"));
  Terms terms("doubles", call);
  terms.hold(function.has_value(), "knows no function named '", call.params.text("op"), "'");
  if (!terms.met()) return terms;
  const auto operands = static_cast<size_t>(ops::function_def(*function).operands);
  terms.of(DType::f64, operands);
  for (const TensorView& input : call.inputs)
    terms.hold(broadcasts(input, call.outputs[0].shape()), "takes operands that broadcast");
  return terms;
}

std::unique_ptr<Kernel> make_doubles(const KernelCall& call) {
  const ops::Function function = *ops::function_from_name(call.params.text("op"));
  const bool light = ops::function_def(function).cost == ops::Cost::light;
  std::vector<double> values = call.params.reals("values", {});
  values.resize(2);
  return std::make_unique<Scalars>(call, row_function(function), light ? kLight : kDear,
                                   Constants{values[0], values[1]});
}

}  // namespace hetnn::kernels
