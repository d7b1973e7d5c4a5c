// Resolves and applies epilogues.
#include "hetnn/kernels/epilogue.h"

#include <algorithm>

#include "hetnn/base/error.h"

namespace hetnn::kernels {
namespace {

// `clip 0 6`, for messages.
std::string written(const Step& step) {
  std::string out = step.function;
  if (step.input >= 0) out += text(" %", step.input);
  for (const double value : step.values) out += text(" ", value);
  return out;
}

[[noreturn]] void refuse_step(const Step& step, std::string_view why) {
  throw InvalidModel(text("step '", written(step), "' ", why, ". Steps are the elementwise functions."));
}

}  // namespace

EpiloguePlan::EpiloguePlan(const KernelCall& call, const TensorView& output) {
  const RowView out = row_view(output);
  for (const Step& step : call.steps) {
    const std::optional<ops::Function> function = ops::function_from_name(step.function);
    if (!function) refuse_step(step, "names no known operation");
    const ops::FunctionDef& def = ops::function_def(*function);
    if (static_cast<int>(step.values.size()) != def.constant_count())
      refuse_step(step, text("takes ", def.constant_count(), " constant(s) and has ", step.values.size()));
    const bool binary = def.operands == 2;
    if (binary != (step.input >= 0)) refuse_step(step, binary ? "needs an operand" : "takes no operand");
    Resolved resolved{.function = *function,
                      .map = block_function(*function),
                      .input = step.input,
                      .row_stride = 0,
                      .row_group = 1,
                      .col_step = 0,
                      .c0 = step.values.empty() ? 0.0f : static_cast<float>(step.values[0]),
                      .c1 = step.values.size() < 2 ? 0.0f : static_cast<float>(step.values[1])};
    if (binary) {
      if (static_cast<size_t>(step.input) >= call.inputs.size())
        refuse_step(step, text("names an input beyond the call's ", call.inputs.size()));
      const TensorView& view = call.inputs[static_cast<size_t>(step.input)];
      require_f32(view, text("the operand of step '", written(step), "'"));
      const auto unfit = [&](std::string_view why) {
        throw Unsupported(text("step '", written(step), "': operand ", view_text(view),
                               " cannot be combined with an output ", view_text(output), ": ", why,
                               ". Expand or copy it to the output's shape and layout first."));
      };
      const int64_t count = view.elems();
      if (count == 1) {
        // One element for all: strides stay 0.
      } else if (output.layout == Layout::nhwc) {
        if (view.rank == 1) {
          if (count != out.cols) unfit("a rank-1 operand has one element per channel");
          resolved.col_step = 1;
        } else {
          const std::optional<TensorView> pixels = view.rank == output.rank ? as_nhwc(view) : std::nullopt;
          if (!pixels) unfit("the layouts differ");
          const RowView rows = row_view(*pixels);
          if (rows.cols != 1 && rows.cols != out.cols) unfit("the channels differ");
          resolved.col_step = rows.cols == 1 ? 0 : 1;
          const int64_t batch = view.dims[0];
          if (batch != 1 && batch != output.dims[0]) unfit("the batches differ");
          if (rows.rows_per_batch == 1) {
            if (batch != 1) {
              resolved.row_stride = rows.pitch;
              resolved.row_group = out.rows_per_batch;
            }
          } else {
            for (int axis = 2; axis < view.rank; ++axis)
              if (view.dims[static_cast<size_t>(axis)] != output.dims[static_cast<size_t>(axis)])
                unfit("only some spatial axes match");
            if (batch != output.dims[0]) unfit("one image for a batch");
            resolved.row_stride = rows.pitch;
          }
        }
      } else {
        if (view.layout != Layout::plain) unfit("the layouts differ");
        const int64_t last = view.rank == 0 ? 1 : view.dims[static_cast<size_t>(view.rank - 1)];
        if (count == out.cols && last == out.cols) {
          resolved.col_step = 1;
        } else if (count == out.rows * out.cols && last == out.cols) {
          resolved.col_step = 1;
          resolved.row_stride = out.cols;
        } else if (count == out.rows && last == 1) {
          resolved.row_stride = 1;
        } else {
          unfit("it is neither the full shape, nor the last axis, nor one element a row");
        }
      }
    }
    steps_.push_back(resolved);
  }
}

RegisterPart EpiloguePlan::take_register_part(bool with_addend) {
  RegisterPart part;
  const auto clamps = [](const Resolved& s) {
    return s.function == ops::Function::relu || s.function == ops::Function::clamp;
  };
  const bool adds = with_addend && !steps_.empty() && steps_[0].function == ops::Function::add &&
                    steps_[0].row_stride > 0 && steps_[0].row_group == 1 && steps_[0].col_step == 1;
  if (adds) {
    part.addend_input = steps_[0].input;
    part.addend_pitch = steps_[0].row_stride;
    steps_.erase(steps_.begin());
  }
  if (steps_.size() == 1 && clamps(steps_[0])) {
    part.lo = steps_[0].function == ops::Function::relu ? 0.0f : steps_[0].c0;
    if (steps_[0].function == ops::Function::clamp) part.hi = steps_[0].c1;
    steps_.clear();
  }
  return part;
}

void EpiloguePlan::apply(float* tile, int64_t ld, int64_t rows, int64_t cols, int64_t row0, int64_t col0,
                         const std::byte* const* inputs) const {
  for (const Resolved& step : steps_) {
    Block block{tile, ld, tile, ld, rows, cols};
    block.c0 = step.c0;
    block.c1 = step.c1;
    if (step.input < 0) {
      step.map(block);
      continue;
    }
    const float* operand = reinterpret_cast<const float*>(inputs[step.input]) + col0 * step.col_step;
    block.col_step = step.col_step;
    if (step.row_group == 1) {
      block.operand = operand + row0 * step.row_stride;
      block.ld_operand = step.row_stride;
      step.map(block);
      continue;
    }
    for (int64_t done = 0; done < rows;) {
      const int64_t group = (row0 + done) / step.row_group;
      block.rows = std::min(rows - done, (group + 1) * step.row_group - row0 - done);
      block.in = block.out = tile + done * ld;
      block.operand = operand + group * step.row_stride;
      step.map(block);
      done += block.rows;
    }
  }
}

}  // namespace hetnn::kernels
