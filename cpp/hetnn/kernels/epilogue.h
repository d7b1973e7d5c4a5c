// The steps of a call made ready to run: operands resolved to strides over the output's rows and columns.
//
// An operand either has the shape of the output (any layout for rank >= 3 that the output has too), or is constant over
// all but the channels ([C], [1,C,1,1]; for products of matrices the last axis), or over the pixels ([N,C,1,1]), or is
// a single element. NaN passes through every step as in torch.
#pragma once

#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "hetnn/kernels/block_ops.h"
#include "hetnn/kernels/elementwise/mixed_step.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {

/// Where a tile has an operand of a step.
struct StepOperand {
  int input = -1;
  int64_t row_stride = 0;  // elements from one (group of) row(s) to the next
  int64_t row_group = 1;   // rows that share one row of the operand
  int64_t col_step = 0;
  /// One for every element of the output, row after row.
  bool is_full() const { return row_stride > 0 && row_group == 1 && col_step == 1; }
};

/// What a kernel with accumulators does by itself: add a multiple of an operand of the output's shape, compute an
/// elementwise function, and clamp at the end.
struct RegisterPart {
  int addend_input = -1;  // -1: none
  int64_t addend_pitch = 0;
  float addend_scale = 1;
  std::optional<ops::Function> function;
  StepOperand operand;  // of the function; its input is -1 where it takes none
  float c0 = 0, c1 = 0;
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();

  bool is_bounded() const {
    return lo != -std::numeric_limits<float>::infinity() || hi != std::numeric_limits<float>::infinity();
  }
  /// Whether the function multiplies what is not above zero by one slope or one a channel.
  bool has_slopes() const {
    return function && operand.row_stride == 0 &&
           (*function == ops::Function::prelu || *function == ops::Function::leaky_relu);
  }
  /// Where the function's operand of a channel stands, which is the first constant of a function that takes none; the
  /// next channel's stands operand.col_step from there.
  const float* operand_of(const std::byte* const* inputs, int64_t channel) const {
    return operand.input < 0 ? &c0 : reinterpret_cast<const float*>(inputs[operand.input]) + channel * operand.col_step;
  }
};

/// Which functions a kernel computes of its accumulators.
enum class RegisterFunctions : uint8_t { none, slopes, all };  // all: but special ones

/// Why an operand of a step cannot be combined with rows of such an output.
Refusal refuse_operand(const TensorView& operand, const TensorView& output);

class EpiloguePlan {
 public:
  EpiloguePlan() = default;

  /// The steps of the call, whose operands are not refused; `output` is the view the kernel writes (its layout decides
  /// what rows are).
  EpiloguePlan(const KernelCall& call, const TensorView& output);

  bool empty() const { return steps_.empty(); }

  /// Removes a leading addition of a full operand or of a multiple of it (when the kernel can add one), then an
  /// elementwise function (when it can compute one), and a closing relu or clamp, when nothing else is between or
  /// behind them.
  RegisterPart take_register_part(bool with_addend = true, RegisterFunctions functions = RegisterFunctions::none);

  /// Applies all steps to the output's rows [row0, row0 + rows) and columns [col0, col0 + cols), which stand at `tile`
  /// with rows ld elements apart. `inputs` are the pointers of the run.
  void apply(float* tile, int64_t ld, int64_t rows, int64_t cols, int64_t row0, int64_t col0,
             const std::byte* const* inputs) const {
    mixed_ ? apply_mixed(tile, ld, rows, cols, row0, col0, inputs)
           : static_cast<void>(apply_to({tile, ld, nullptr}, rows, cols, row0, col0, inputs));
  }

 private:
  using Operand = StepOperand;
  struct Function {
    std::optional<ops::Function> function;  // none: a rounding
    BlockFunction map;
    Operand operand = {};
    float c0 = 0, c1 = 0;
  };
  template <typename Of>
  struct Joined {
    Of step;
    std::vector<Operand> operands;
  };
  using Sum = Joined<SumStep>;
  using Mixed = Joined<MixedStep>;
  using Resolved = std::variant<Function, Sum, Mixed>;

  void apply_mixed(float* tile, int64_t ld, int64_t rows, int64_t cols, int64_t row0, int64_t col0,
                   const std::byte* const* inputs) const;
  // Returns whether truth values are left.
  bool apply_to(const MixedRows& tile, int64_t rows, int64_t cols, int64_t row0, int64_t col0,
                const std::byte* const* inputs) const;

  std::vector<Resolved> steps_;
  bool mixed_ = false;  // whether one of them is
};

}  // namespace hetnn::kernels
