// Resolves and applies epilogues.
#include "hetnn/kernels/epilogue.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/kernels/elementwise/nary_narrow_ops.h"

namespace hetnn::kernels {
namespace {

// Fills `into` with strides, or says why there are none.
Refusal find_operand(const TensorView& view, const TensorView& output, StepOperand& into) {
  const RowView out = row_view(output);
  const int64_t count = view.elems();
  // One element for all: strides stay 0.
  if (count == 1) return std::nullopt;
  if (output.layout == Layout::nhwc) {
    if (view.rank == 1) {
      into.col_step = 1;
      return count == out.cols ? Refusal() : "an operand of one axis has one element per channel";
    }
    const std::optional<TensorView> pixels = view.rank == output.rank ? as_nhwc(view) : std::nullopt;
    if (!pixels) return "the layouts differ";
    const RowView rows = row_view(*pixels);
    if (rows.cols != 1 && rows.cols != out.cols) return "the channels differ";
    into.col_step = rows.cols == 1 ? 0 : 1;
    const int64_t batch = view.dims[0];
    if (batch != 1 && batch != output.dims[0]) return "the batches differ";
    if (rows.rows_per_batch == 1) {
      if (batch == 1) return std::nullopt;
      into.row_stride = rows.pitch;
      into.row_group = out.rows_per_batch;
      return std::nullopt;
    }
    if (!std::ranges::equal(view.shape().subspan(2), output.shape().subspan(2))) return "only some spatial axes match";
    if (batch != output.dims[0]) return "one image for a batch";
    into.row_stride = rows.pitch;
    return std::nullopt;
  }
  if (view.layout != Layout::plain) return "the layouts differ";
  const int64_t last = view.rank == 0 ? 1 : view.dims[static_cast<size_t>(view.rank - 1)];
  if (count == out.cols && last == out.cols) {
    into.col_step = 1;
  } else if (count == out.rows * out.cols && last == out.cols) {
    into.col_step = 1;
    into.row_stride = out.cols;
  } else if (count == out.rows && last == 1) {
    into.row_stride = 1;
  } else {
    return "it is neither the full shape, nor the last axis, nor one element a row";
  }
  return std::nullopt;
}

StepOperand resolve(const KernelCall& call, int input, const TensorView& output) {
  StepOperand out{.input = input};
  const Refusal unfit = find_operand(call.inputs[static_cast<size_t>(input)], output, out);
  HETNN_ASSERT(!unfit, "operand ", input, " of a step: ", *unfit);
  return out;
}

}  // namespace

Refusal refuse_operand(const TensorView& operand, const TensorView& output) {
  StepOperand found;
  return find_operand(operand, output, found);
}

EpiloguePlan::EpiloguePlan(const KernelCall& call, const TensorView& output) {
  for (const Step& step : call.steps) {
    mixed_ |= is_mixed(step);
    if (const std::optional<DType> to = conversion_of(step); to && !is_mixed(step)) {
      if (is_narrow_float(*to)) steps_.emplace_back(Function{.function = std::nullopt, .map = round_function(*to)});
      continue;
    }
    if (is_sum(step) || is_mixed(step)) {
      std::vector<Operand> operands;
      operands.reserve(static_cast<size_t>(operand_count(step)));
      for (int k = 0; k < operand_count(step); ++k) operands.push_back(resolve(call, step.input + k, output));
      if (is_sum(step)) {
        steps_.emplace_back(Sum{SumStep(step, call.params.integer("fan_in", 0)), std::move(operands)});
      } else {
        steps_.emplace_back(Mixed{MixedStep(step), std::move(operands)});
      }
      continue;
    }
    const ops::Function function = *ops::function_from_name(step.function);
    steps_.emplace_back(Function{.function = function,
                                 .map = block_function(function),
                                 .operand = step.input < 0 ? Operand{} : resolve(call, step.input, output),
                                 .c0 = step.values.empty() ? 0.0f : static_cast<float>(step.values[0]),
                                 .c1 = step.values.size() < 2 ? 0.0f : static_cast<float>(step.values[1])});
  }
}

RegisterPart EpiloguePlan::take_register_part(bool with_addend, RegisterFunctions functions) {
  RegisterPart part;
  const auto takes = [&](const Operand& operand, float scale) {
    part.addend_input = operand.input;
    part.addend_pitch = operand.row_stride;
    part.addend_scale = scale;
  };
  if (with_addend && !steps_.empty()) {
    const auto* first = std::get_if<Function>(steps_.data());
    if (auto* sum = std::get_if<Sum>(steps_.data())) {
      if (const auto taken = sum->step.take([&](size_t k) { return sum->operands[k].is_full(); })) {
        const auto at = sum->operands.begin() + static_cast<std::ptrdiff_t>(taken->operand);
        takes(*at, taken->coefficient);
        sum->operands.erase(at);
        if (sum->operands.empty()) steps_.erase(steps_.begin());
      }
    } else if (first && first->function == ops::Function::add && first->operand.is_full()) {
      takes(first->operand, 1);
      steps_.erase(steps_.begin());
    }
  }
  const auto is_bound = [](const Function& step) {
    return step.function == ops::Function::relu || step.function == ops::Function::clamp;
  };
  if (const auto* first = steps_.empty() ? nullptr : std::get_if<Function>(steps_.data());
      functions != RegisterFunctions::none && first && first->function && !is_bound(*first) &&
      (first->operand.row_stride == 0 || first->operand.row_group == 1)) {
    RegisterPart with = part;
    with.function = first->function;
    with.operand = first->operand;
    with.c0 = first->c0;
    with.c1 = first->c1;
    if ((functions == RegisterFunctions::all && !ops::is_special(*with.function)) || with.has_slopes()) {
      part = with;
      steps_.erase(steps_.begin());
    }
  }
  if (const auto* last = steps_.size() == 1 ? std::get_if<Function>(steps_.data()) : nullptr; last && is_bound(*last)) {
    part.lo = last->function == ops::Function::relu ? 0.0f : last->c0;
    if (last->function == ops::Function::clamp) part.hi = last->c1;
    steps_.clear();
  }
  return part;
}

void EpiloguePlan::apply_mixed(float* tile, int64_t ld, int64_t rows, int64_t cols, int64_t row0, int64_t col0,
                               const std::byte* const* inputs) const {
  for_stretches(rows, cols, {tile, nullptr, ld}, {tile, nullptr, ld},
                [&](int64_t r, int64_t c, int64_t lines, int64_t width, const MixedStretch& stretch) {
                  return apply_to(stretch.rows, lines, width, row0 + r, col0 + c, inputs);
                });
}

bool EpiloguePlan::apply_to(const MixedRows& rows_of, int64_t rows, int64_t cols, int64_t row0, int64_t col0,
                            const std::byte* const* inputs) const {
  float* tile = rows_of.at;
  const int64_t ld = rows_of.ld;
  bool is_truth = false;
  // The operand's element of the tile's first column in the row (or group of rows) of output row `row`.
  const auto at = [&](const Operand& operand, int64_t row, int64_t bytes = sizeof(float)) {
    return inputs[operand.input] + (col0 * operand.col_step + row / operand.row_group * operand.row_stride) * bytes;
  };
  // Rows from the tile's row `done` on in which no operand of that group begins another row.
  const auto together = [&](const Operand& operand, int64_t done) {
    return operand.row_group == 1 ? rows - done : operand.row_group - (row0 + done) % operand.row_group;
  };
  const auto join = [&](const auto& joined, const auto& compute) {
    SumStep::Operand operands[kMaxNaryInputs];
    for (int64_t done = 0, count = 0; done < rows; done += count) {
      count = rows - done;
      for (const Operand& operand : joined.operands) count = std::min(count, together(operand, done));
      for (size_t k = 0; k < joined.operands.size(); ++k) {
        const Operand& operand = joined.operands[k];
        operands[k] = {at(operand, row0 + done, joined.step.operand_bytes(k)),
                       operand.row_group == 1 ? operand.row_stride : 0, operand.col_step};
      }
      compute(done, count, operands);
    }
  };
  for (const Resolved& resolved : steps_) {
    if (const auto* sum = std::get_if<Sum>(&resolved)) {
      join(*sum, [&](int64_t done, int64_t count, const SumStep::Operand* operands) {
        sum->step.apply(tile + done * ld, ld, tile + done * ld, ld, count, cols, operands);
      });
      continue;
    }
    if (const auto* mixed = std::get_if<Mixed>(&resolved)) {
      is_truth = mixed->step.makes_truths();
      join(*mixed, [&](int64_t done, int64_t count, const SumStep::Operand* operands) {
        const MixedRows to{tile + done * ld, ld, rows_of.truths + done * cols};
        mixed->step.apply(to.at, ld, to, count, cols, operands);
      });
      continue;
    }
    const auto& step = std::get<Function>(resolved);
    Block block{tile, ld, tile, ld, rows, cols};
    block.c0 = step.c0;
    block.c1 = step.c1;
    if (step.operand.input < 0) {
      step.map(block);
      continue;
    }
    block.col_step = step.operand.col_step;
    block.ld_operand = step.operand.row_group == 1 ? step.operand.row_stride : 0;
    for (int64_t done = 0; done < rows; done += block.rows) {
      block.rows = std::min(rows - done, together(step.operand, done));
      block.in = block.out = tile + done * ld;
      block.operand = reinterpret_cast<const float*>(at(step.operand, row0 + done));
      step.map(block);
    }
  }
  return is_truth;
}

}  // namespace hetnn::kernels
