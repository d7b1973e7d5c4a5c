// linear_narrow: rows of the input times a packed weight of f16 or bf16, which is made f32 in registers or, of more
// than one row, a part at a time.
#include <algorithm>
#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/gemm/expanded.h"
#include "hetnn/kernels/gemm/gemm.h"
#include "hetnn/kernels/gemm/narrow_micro.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kFewRows = 4;       // that make a panel f32 in registers, each anew
constexpr int64_t kRowsAtOnce = 126;  // that are multiplied by a panel before the next
constexpr int64_t kBlock = 64;        // k that are made f32 together

class NarrowLinear final : public Kernel {
 public:
  explicit NarrowLinear(const KernelCall& call)
      : dtype_(call.inputs[1].dtype),
        rows_(row_view(call.inputs[0]).rows),
        k_(call.inputs[1].dims[1]),
        cols_(call.inputs[1].dims[0]),
        bias_(call.params.integer("bias", 0) != 0),
        product_(rows_, k_, cols_, kBlock),
        epilogue_(call, call.outputs[0]) {}

  int64_t scratch_bytes(int threads) const override {
    return rows_ <= kFewRows ? 0 : threads * product_.scratch_bytes_per_thread();
  }
  bool serial() const override { return rows_ * cols_ * k_ < 32768; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    const auto* weight = reinterpret_cast<const uint16_t*>(inputs[1]);
    const auto* bias = bias_ ? reinterpret_cast<const float*>(inputs[2]) : nullptr;
    auto* out = reinterpret_cast<float*>(outputs[0]);
    const Share panels = share_of((cols_ + kPanel - 1) / kPanel, context.thread, context.threads);
    const int64_t col = panels.begin * kPanel, cols = std::min(cols_, panels.end * kPanel) - col;
    for (int64_t row = 0; row < rows_; row += kRowsAtOnce) {
      const Share rows{row, std::min(rows_, row + kRowsAtOnce)};
      if (rows_ <= kFewRows) {
        for (int64_t panel = panels.begin; panel < panels.end; ++panel)
          for (int64_t r = 0; r < rows_; ++r)
            multiply_narrow(dtype_, {.x = x + r * k_,
                                     .panel = weight + panel * k_ * kPanel,
                                     .k = k_,
                                     .bias = bias == nullptr ? nullptr : bias + panel * kPanel,
                                     .out = out + r * cols_ + panel * kPanel,
                                     .cols = std::min(kPanel, cols_ - panel * kPanel)});
      } else {
        product_.run({x, bias, out}, rows, panels,
                     context.scratch + context.thread * product_.scratch_bytes_per_thread(),
                     [&](int64_t panel, int64_t first, int64_t blocks, float* to) {
                       const int64_t k = first * kBlock, count = std::min(blocks * kBlock, k_ - k);
                       widen_panel(dtype_, weight + (panel * k_ + k) * kPanel, count * kPanel, to);
                     });
      }
      if (!epilogue_.empty() && cols > 0)
        epilogue_.apply(out + row * cols_ + col, cols_, rows.end - row, cols, row, col, inputs);
    }
  }

 private:
  DType dtype_;
  int64_t rows_, k_, cols_;
  bool bias_;
  ExpandedProduct product_;
  EpiloguePlan epilogue_;
};

}  // namespace

std::unique_ptr<Kernel> make_narrow_linear(const KernelCall& call) {
  require_f32(call.inputs[0], "linear_narrow: x");
  const TensorView &x = call.inputs[0], &weight = call.inputs[1];
  if (!is_narrow_float(weight.dtype))
    throw Unsupported(text("linear_narrow takes weights of f16 and bf16; got ", dtype_name(weight.dtype), "."));
  if (x.layout != Layout::plain || call.outputs[0].layout != Layout::plain)
    throw Unsupported("linear_narrow reads and writes plain tensors. Insert a copy to the plain layout.");
  return std::make_unique<NarrowLinear>(call);
}

int64_t packed_narrow_bytes(const KernelCall& call, int /*input*/) {
  return (call.inputs[1].dims[0] + kPanel - 1) / kPanel * kPanel * call.inputs[1].dims[1] * 2;
}

std::vector<std::byte> pack_narrow(const KernelCall& call, int input, std::span<const std::byte> weight) {
  std::vector<std::byte> packed(static_cast<size_t>(packed_narrow_bytes(call, input)));
  const int64_t cols = call.inputs[1].dims[0], k = call.inputs[1].dims[1];
  for (int64_t col = 0; col < cols; ++col)
    for (int64_t i = 0; i < k; ++i)
      std::memcpy(packed.data() + ((col / kPanel * k + i) * kPanel + col % kPanel) * 2,
                  weight.data() + (col * k + i) * 2, 2);
  return packed;
}

}  // namespace hetnn::kernels
