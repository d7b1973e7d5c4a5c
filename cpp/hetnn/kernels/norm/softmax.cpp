// softmax and log_softmax over any axis of any layout.
#include <algorithm>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/norm/norm.h"
#include "hetnn/kernels/norm/row_ops.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

class Softmax final : public Kernel {
 public:
  Softmax(const KernelCall& call, size_t axis, bool log) : log_(log), ops_(&row_ops()) {
    const TensorView& x = call.inputs[0];
    const TensorView& y = call.outputs[0];
    const std::array<int64_t, 8> in = strides_of(x), out = strides_of(y);
    n_ = x.dims[axis];
    in_step_ = in[axis];
    out_step_ = out[axis];
    // The lines are walked by a nest over the remaining axes.
    std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
    shape[axis] = 1;
    NestOperand to{out, 0}, from{in, 0};
    to.strides[axis] = from.strides[axis] = 0;
    lines_ = Nest(shape, {to, from});
  }

  int64_t scratch_bytes(int threads) const override {
    return short_or_strided() ? threads * n_ * kSoftmaxColumns * 4 : 0;
  }
  bool serial() const override { return lines_.elems() * n_ < 4096; }

  void run(const RunContext& context, const std::byte* const* inputs, std::byte* const* outputs) const override {
    const auto* x = reinterpret_cast<const float*>(inputs[0]);
    auto* y = reinterpret_cast<float*>(outputs[0]);
    if (n_ == 0) return;
    if (!short_or_strided()) {
      lines_.for_tiles(context.thread, context.threads, 16, [&](const Nest::Tile& tile) {
        for (int64_t r = 0; r < tile.rows; ++r)
          for (int64_t c = 0; c < tile.cols; ++c)
            ops_->softmax(x + tile.offsets[1] + r * lines_.row_stride(1) + c * lines_.col_stride(1),
                          y + tile.offsets[0] + r * lines_.row_stride(0) + c * lines_.col_stride(0), n_, log_);
      });
      return;
    }
    // Sixteen lines side by side: turned into columns, computed as vectors, turned back.
    float* block = reinterpret_cast<float*>(context.scratch) + context.thread * n_ * kSoftmaxColumns;
    lines_.for_tiles(context.thread, context.threads, kSoftmaxColumns, [&](const Nest::Tile& tile) {
      const int64_t count = tile.rows * tile.cols;
      int64_t from[kSoftmaxColumns], to[kSoftmaxColumns];
      for (int64_t i = 0; i < kSoftmaxColumns; ++i) {
        const int64_t line = std::min(i, count - 1), r = line / tile.cols, c = line % tile.cols;
        from[i] = tile.offsets[1] + r * lines_.row_stride(1) + c * lines_.col_stride(1);
        to[i] = tile.offsets[0] + r * lines_.row_stride(0) + c * lines_.col_stride(0);
      }
      for (int64_t k = 0; k < n_; ++k)
        for (int64_t i = 0; i < kSoftmaxColumns; ++i) block[k * kSoftmaxColumns + i] = x[from[i] + k * in_step_];
      ops_->softmax_columns(block, n_, log_);
      for (int64_t k = 0; k < n_; ++k)
        for (int64_t i = 0; i < count; ++i) y[to[i] + k * out_step_] = block[k * kSoftmaxColumns + i];
    });
  }

 private:
  bool short_or_strided() const { return in_step_ != 1 || out_step_ != 1 || n_ < 24; }

  bool log_;
  const RowOps* ops_;
  int64_t n_ = 0, in_step_ = 1, out_step_ = 1;
  Nest lines_;
};

std::unique_ptr<Kernel> make(const KernelCall& call, std::string_view op, bool log) {
  if (call.inputs.size() != 1 || call.outputs.size() != 1)
    throw InvalidModel(text(op, " takes x and gives one output. Check the call against kernels/norm/norm.h."));
  const TensorView& x = call.inputs[0];
  require_f32(x, text(op, ": x"));
  require_f32(call.outputs[0], text(op, ": the output"));
  const size_t axis = checked_axis(op, call.params.integer("axis", -1), x.rank);
  if (!std::ranges::equal(x.shape(), call.outputs[0].shape()))
    throw InvalidModel(text(op, ": the output must have the shape of x; got x ", view_text(x), ", output ",
                            view_text(call.outputs[0]), ". Check the call."));
  return std::make_unique<Softmax>(call, axis, log);
}

}  // namespace

std::unique_ptr<Kernel> make_softmax(const KernelCall& call) { return make(call, "softmax", false); }
std::unique_ptr<Kernel> make_log_softmax(const KernelCall& call) { return make(call, "log_softmax", true); }

}  // namespace hetnn::kernels
