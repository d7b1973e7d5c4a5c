// The terms that many kernels have.
#include "hetnn/kernels/query/terms.h"

#include <algorithm>

#include "hetnn/base/counted.h"
#include "hetnn/kernels/elementwise/steps.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/nest.h"

namespace hetnn::kernels {
namespace {

// `clip 0 6`, for messages.
std::string written(const Step& step) {
  std::string out = step.function;
  if (step.input >= 0) out += text(" %", step.input);
  for (const double value : step.values) out += text(" ", value);
  return out;
}

}  // namespace

Terms& Terms::of(DType dtype, size_t inputs) {
  reads(dtype, inputs);
  for (const TensorView& view : call_.outputs) is(view, dtype, "an output");
  return *this;
}

Terms& Terms::reads(DType dtype, size_t inputs) {
  hold(call_.inputs.size() >= inputs, "takes ", counted(inputs, "input"), "; got ", call_.inputs.size());
  for (size_t k = 0; met() && k < inputs; ++k)
    hold(call_.inputs[k].dtype == dtype, "takes ", dtype_name(dtype), "; input ", k, " is ",
         dtype_name(call_.inputs[k].dtype));
  return *this;
}

Terms& Terms::writes_behind_steps(DType computed) {
  return is(call_.outputs[0], result_type(call_.steps, computed), "the result");
}

Terms& Terms::is(const TensorView& view, DType dtype, std::string_view what) {
  return hold(view.dtype == dtype, "takes ", dtype_name(dtype), " as ", what, "; got ", dtype_name(view.dtype));
}

Terms& Terms::plain() {
  for (const std::span<const TensorView> side : {call_.inputs, call_.outputs}) {
    const auto at = std::ranges::find_if(side, [](const TensorView& view) { return view.layout != Layout::plain; });
    if (at != side.end()) hold(false, "reads and writes plain tensors; got ", view_text(*at));
  }
  return *this;
}

bool Terms::holds_step(const Step& step) {
  if (!met()) return false;
  const int count = operand_count(step);
  if (count > 0 && (step.input < 0 || step.input + count > static_cast<int>(call_.inputs.size())))
    hold(false, "has the step '", written(step), "', which names an input beyond the call's ", call_.inputs.size());
  for (int k = 0; met() && k < count; ++k) {
    const DType dtype = call_.inputs[static_cast<size_t>(step.input + k)].dtype;
    const DType wanted = operand_type(step, static_cast<size_t>(k));
    hold(dtype == wanted, "takes ", dtype_name(wanted), " as an operand of the step '", written(step), "'; got ",
         dtype_name(dtype));
  }
  if (conversion_of(step)) return met();
  if (is_sum(step)) return hold(refuse_sum(step, call_.params.integer("fan_in", 0))).met();
  if (step.function == kChoice || ops::predicate_from_name(step.function)) return met();
  const std::optional<ops::Function> function = ops::function_from_name(step.function);
  hold(function.has_value(), "has the step '", written(step), "', which is no elementwise function");
  if (!function) return false;
  const ops::FunctionDef& def = ops::function_def(*function);
  hold(static_cast<int>(step.values.size()) == def.constant_count(), "has the step '", written(step), "', which takes ",
       def.constant_count(), " constants");
  hold((def.operands == 2) == (step.input >= 0), "has the step '", written(step), "', which takes ", def.operands - 1,
       " operands besides the running value");
  return met();
}

Terms& Terms::steps_on_rows(const TensorView& output) {
  for (const Step& step : call_.steps) {
    if (!holds_step(step)) break;
    for (int k = 0; k < operand_count(step); ++k) {
      const TensorView& view = call_.inputs[static_cast<size_t>(step.input + k)];
      if (const Refusal unfit = refuse_operand(view, output))
        hold(false, "has the step '", written(step), "', whose operand ", view_text(view),
             " cannot be combined with an output ", view_text(output), ": ", *unfit);
    }
  }
  return *this;
}

Terms& Terms::steps_on_tiles() {
  const TensorView& output = call_.outputs[0];
  for (const Step& step : call_.steps) {
    if (!holds_step(step)) break;
    for (int k = 0; k < operand_count(step); ++k) {
      const TensorView& view = call_.inputs[static_cast<size_t>(step.input + k)];
      hold(broadcasts(channel_view(view, output, step.function == "prelu"), output.shape()), "has the step '",
           written(step), "', whose operand ", view_text(view), " does not broadcast to ", view_text(output));
    }
  }
  return *this;
}

}  // namespace hetnn::kernels
