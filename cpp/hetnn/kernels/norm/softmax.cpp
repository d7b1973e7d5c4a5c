// softmax and log_softmax over any axis of any layout, with steps behind.
#include <algorithm>
#include <utility>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/steps.h"
#include "hetnn/kernels/gemm/split.h"
#include "hetnn/kernels/nest.h"
#include "hetnn/kernels/norm/norm.h"
#include "hetnn/kernels/norm/row_ops.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kLeastRow = 24;  // along the axis, of lines that are computed one by one

class Softmax final : public Kernel {
 public:
  Softmax(const KernelCall& call, size_t axis, bool log) : log_(log), ops_(&row_ops()) {
    const TensorView& x = call.inputs[0];
    n_ = x.dims[axis];
    ElementwiseBuilder builder(call, "softmax");
    builder.add_operand(0);
    builder.add_steps();
    steps_ = builder.steps();
    // The lines are walked by a nest over the remaining axes.
    std::vector<int64_t> shape(x.shape().begin(), x.shape().end());
    shape[axis] = 1;
    std::vector<NestOperand> operands = builder.operands();
    for (NestOperand& operand : operands) axis_steps_.push_back(std::exchange(operand.strides[axis], 0));
    lines_ = Nest(shape, std::move(operands));
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
      const int64_t lines = std::clamp<int64_t>(kTileElems / n_, 1, 16);
      lines_.for_tiles(context.thread, context.threads, lines, [&](const Nest::Tile& tile) {
        for (int64_t r = 0; r < tile.rows; ++r) {
          for (int64_t c = 0; c < tile.cols; ++c)
            ops_->softmax(x + line(tile, 1, r, c), y + line(tile, 0, r, c), n_, log_);
          const TileRows made{y + line(tile, 0, r, 0), lines_.col_stride(0)};
          steps_.apply(tile.cols, n_, inputs, {made.at, made.ld}, made, [&](size_t k) {
            return ElementwiseSteps::Place{line(tile, k, r, 0), lines_.col_stride(k), axis_steps_[k]};
          });
        }
      });
      return;
    }
    // Sixteen lines side by side: turned into columns, computed as vectors, turned back.
    float* block = reinterpret_cast<float*>(context.scratch) + context.thread * n_ * kSoftmaxColumns;
    const bool in_rows = lines_.cols() >= kSoftmaxColumns;
    const int64_t lines =
        in_rows ? std::clamp<int64_t>(kTileElems / n_, kSoftmaxColumns, 16 * kSoftmaxColumns) : kSoftmaxColumns;
    lines_.for_tiles(context.thread, context.threads, lines, [&](const Nest::Tile& tile) {
      if (in_rows) {
        for (int64_t r = 0; r < tile.rows; ++r)
          for (int64_t c = 0; c < tile.cols; c += kSoftmaxColumns)
            even_lines(tile, r, c, std::min(kSoftmaxColumns, tile.cols - c), block, inputs, x, y);
        return;
      }
      const int64_t count = tile.rows * tile.cols;
      int64_t from[kSoftmaxColumns], to[kSoftmaxColumns];
      for (int64_t i = 0; i < kSoftmaxColumns; ++i) {
        const int64_t k = std::min(i, count - 1), r = k / tile.cols, c = k % tile.cols;
        from[i] = line(tile, 1, r, c);
        to[i] = line(tile, 0, r, c);
      }
      for (int64_t k = 0; k < n_; ++k)
        for (int64_t i = 0; i < kSoftmaxColumns; ++i) block[k * kSoftmaxColumns + i] = x[from[i] + k * axis_steps_[1]];
      ops_->softmax_columns(block, n_, log_);
      for (int64_t r = 0; r < tile.rows; ++r) apply_steps(tile, r, 0, tile.cols, block + r * tile.cols, inputs);
      for (int64_t k = 0; k < n_; ++k)
        for (int64_t i = 0; i < count; ++i) y[to[i] + k * axis_steps_[0]] = block[k * kSoftmaxColumns + i];
    });
  }

 private:
  int64_t line(const Nest::Tile& tile, size_t operand, int64_t r, int64_t c) const {
    return tile.offsets[operand] + r * lines_.row_stride(operand) + c * lines_.col_stride(operand);
  }

  static void copy_line(const float* from, int64_t count, float* to) {
    count == kSoftmaxColumns ? std::copy_n(from, kSoftmaxColumns, to) : std::copy_n(from, count, to);
  }

  // Some lines of one row of a tile from column c on, evenly spaced.
  void even_lines(const Nest::Tile& tile, int64_t r, int64_t c, int64_t count, float* block,
                  const std::byte* const* inputs, const float* x, float* y) const {
    const float* from = x + line(tile, 1, r, c);
    float* to = y + line(tile, 0, r, c);
    if (lines_.col_stride(1) == 1) {
      for (int64_t k = 0; k < n_; ++k) copy_line(from + k * axis_steps_[1], count, block + k * kSoftmaxColumns);
    } else {
      for (int64_t k = 0; k < n_; ++k)
        for (int64_t i = 0; i < count; ++i)
          block[k * kSoftmaxColumns + i] = from[i * lines_.col_stride(1) + k * axis_steps_[1]];
    }
    if (count < kSoftmaxColumns) {
      for (int64_t k = 0; k < n_; ++k)
        std::fill(block + k * kSoftmaxColumns + count, block + (k + 1) * kSoftmaxColumns, 0.0f);
    }
    ops_->softmax_columns(block, n_, log_);
    apply_steps(tile, r, c, count, block, inputs);
    if (lines_.col_stride(0) == 1) {
      for (int64_t k = 0; k < n_; ++k) copy_line(block + k * kSoftmaxColumns, count, to + k * axis_steps_[0]);
    } else {
      for (int64_t i = 0; i < count; ++i)
        for (int64_t k = 0; k < n_; ++k)
          to[i * lines_.col_stride(0) + k * axis_steps_[0]] = block[k * kSoftmaxColumns + i];
    }
  }

  // On the columns of such a block.
  void apply_steps(const Nest::Tile& tile, int64_t r, int64_t c, int64_t count, float* block,
                   const std::byte* const* inputs) const {
    if (steps_.empty()) return;
    const TileRows made{block, kSoftmaxColumns};
    steps_.apply(n_, count, inputs, {made.at, made.ld}, made, [&](size_t k) {
      return ElementwiseSteps::Place{line(tile, k, r, c), axis_steps_[k], lines_.col_stride(k)};
    });
  }

  bool short_or_strided() const { return axis_steps_[1] != 1 || axis_steps_[0] != 1 || n_ < kLeastRow; }

  bool log_;
  const RowOps* ops_;
  int64_t n_ = 0;
  std::vector<int64_t> axis_steps_;  // of the operands of the nest
  ElementwiseSteps steps_;
  Nest lines_;
};

Refusal serves(std::string_view name, const KernelCall& call) {
  return Terms(name, call).of(DType::f32, 1).hold(call.inputs[0].rank > 0, "takes one axis or more").steps_on_tiles();
}

// Three passes over each line: its largest element, exponentials and their sum, and what they are divided by. Short or
// strided lines are turned first, element by element where they do not lie side by side.
Work work_of(const KernelCall& call, const Machine& machine, int64_t axis_from, bool log) {
  // In the time of so many multiply-adds of vectors one goes through the passes, the numbers of a line or of lines side
  // by side are found, an element is turned there and back, and one behind the last vector has its logarithm.
  constexpr double kVector = 18, kLine = 60, kLines = 100, kElement = 2.4, kRest = 10;
  const TensorView& x = call.inputs[0];
  const auto axis = checked_axis("softmax", call.params.integer("axis", axis_from), x.rank);
  const int64_t n = std::max<int64_t>(1, x.dims[axis]), lines = x.elems() / n;
  const double bytes = bytes_of(call.inputs.first(1)) + bytes_of(call.outputs.first(1));
  Work work = Work().fetch(bytes, bytes, machine);
  const bool along = strides_of(x)[axis] == 1 && strides_of(call.outputs[0])[axis] == 1;
  if (along && n >= kLeastRow) {
    work.multiplies = static_cast<double>(lines) * (vectors_of(n) * kVector + kLine);
    if (log) work.multiplies += static_cast<double>(lines * (n % kPanel)) * kRest;
  } else {
    work.multiplies = vectors_of(lines) * (static_cast<double>(n) * kVector + kLines);
    if (along) work.multiplies += static_cast<double>(x.elems()) * kElement;
  }
  work.grains = std::max<int64_t>(1, along ? lines : (lines + kSoftmaxColumns - 1) / kSoftmaxColumns);
  return work;
}

std::unique_ptr<Kernel> make(const KernelCall& call, std::string_view op, bool log) {
  return std::make_unique<Softmax>(call, checked_axis(op, call.params.integer("axis", -1), call.inputs[0].rank), log);
}

}  // namespace

Refusal serves_softmax(const KernelCall& call) { return serves("softmax", call); }
Refusal serves_log_softmax(const KernelCall& call) { return serves("log_softmax", call); }
Work softmax_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  return work_of(call, machine, -1, false);
}
Work log_softmax_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  return work_of(call, machine, -1, true);
}
std::unique_ptr<Kernel> make_softmax(const KernelCall& call) { return make(call, "softmax", false); }
std::unique_ptr<Kernel> make_log_softmax(const KernelCall& call) { return make(call, "log_softmax", true); }

}  // namespace hetnn::kernels
