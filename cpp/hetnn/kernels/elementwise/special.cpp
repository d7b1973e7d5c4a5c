// Special functions of reals, an element after another, on all threads.
#include "hetnn/kernels/elementwise/elementwise.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/ops/special/functions.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kSerialBelow = 512;
constexpr int64_t kTileElems = 1024;

template <typename T, typename Function>
class Special final : public Kernel {
 public:
  Special(const KernelCall& call, const Function& function) : function_(function) {
    const TensorView& y = call.outputs[0];
    std::vector<NestOperand> operands = {broadcast_operand(y, y.shape(), "special: the output")};
    for (const TensorView& input : call.inputs)
      operands.push_back(broadcast_operand(input, y.shape(), "special: an input"));
    nest_ = Nest(y.shape(), std::move(operands));
  }

  bool serial() const override { return nest_.elems() < kSerialBelow; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    nest_.for_tiles(context.thread, context.threads, kTileElems, [&](const Nest::Tile& tile) {
      for (int64_t r = 0; r < tile.rows; ++r) {
        const auto first = [&](size_t k) { return tile.offsets[k] + r * nest_.row_stride(k); };
        T* y = reinterpret_cast<T*>(outputs[0]) + first(0);
        const T* a = reinterpret_cast<const T*>(inputs[0]) + first(1);
        const int64_t dy = nest_.col_stride(0), da = nest_.col_stride(1);
        if constexpr (std::is_same_v<Function, ops::special::Unary>) {
          for (int64_t c = 0; c < tile.cols; ++c) y[c * dy] = function_.of(a[c * da]);
        } else {
          const T* b = reinterpret_cast<const T*>(inputs[1]) + first(2);
          const int64_t db = nest_.col_stride(2);
          for (int64_t c = 0; c < tile.cols; ++c) y[c * dy] = function_.of(a[c * da], b[c * db]);
        }
      }
    });
  }

 private:
  Function function_;
  Nest nest_;
};

template <typename Function>
std::unique_ptr<Kernel> make(const KernelCall& call, const Function& function) {
  if (call.inputs[0].dtype == DType::f32) return std::make_unique<Special<float, Function>>(call, function);
  return std::make_unique<Special<double, Function>>(call, function);
}

}  // namespace

Refusal serves_special(const KernelCall& call) {
  const size_t operands = call.inputs.size();
  const std::string name = call.params.text("function", "");
  const bool known = operands == 1 ? ops::special::unary_named(name).has_value()
                                   : operands == 2 && ops::special::binary_named(name).has_value();
  const DType dtype = call.outputs[0].dtype;
  return Terms("special", call)
      .hold(known, "knows no function named '", name, "' of ", operands, " operands")
      .hold(dtype == DType::f32 || dtype == DType::f64, "takes f32 and f64; got ", dtype_name(dtype))
      .of(dtype, operands);
}

std::unique_ptr<Kernel> make_special(const KernelCall& call) {
  const std::string name = call.params.text("function");
  return call.inputs.size() == 1 ? make(call, *ops::special::unary_named(name))
                                 : make(call, *ops::special::binary_named(name));
}

}  // namespace hetnn::kernels
