// Elementwise operations one after the other on a tile.
#include "hetnn/kernels/elementwise/steps.h"

#include "hetnn/base/error.h"
#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
TensorView channel_view(const TensorView& view, const TensorView& output, bool prelu) {
  if (view.rank != 1 || view.dims[0] == 1 || output.rank < 2) return view;
  if (output.layout == Layout::plain && !prelu) return view;
  std::vector<int64_t> shape(static_cast<size_t>(output.rank), 1);
  shape[1] = view.dims[0];
  return TensorView::plain(view.dtype, shape);
}

ops::Function step_function(std::string_view what, const std::string& op, const std::vector<double>& values,
                            bool binary) {
  const std::optional<ops::Function> function = ops::function_from_name(op);
  if (!function)
    throw InvalidModel(
        text(what, ": no operation is named '", op, "'. See ops/elementwise/formulas.inc for the list."));
  const ops::FunctionDef& def = ops::function_def(*function);
  if ((def.operands == 2) != binary)
    throw InvalidModel(text(what, ": '", op, "' takes ", def.operands == 2 ? "two operands" : "one operand",
                            ". Use the other of unary and binary."));
  if (static_cast<int>(values.size()) != def.constant_count())
    throw InvalidModel(text(what, ": '", op, "' takes ", def.constant_count(), " constant(s); got ", values.size(),
                            ". Set the parameter values."));
  return *function;
}

ElementwiseBuilder::ElementwiseBuilder(const KernelCall& call, std::string_view what)
    : call_(call),
      what_(what),
      operands_{broadcast_operand(call.outputs[0], call.outputs[0].shape(), text(what, ": the output"))} {}

int ElementwiseBuilder::add_view(int input, const TensorView& view) {
  const std::string name = text(what_, ": input ", input);
  require_f32(view, name);
  operands_.push_back(broadcast_operand(view, call_.outputs[0].shape(), name));
  steps_.inputs_.push_back(input);
  return static_cast<int>(operands_.size()) - 1;
}

int ElementwiseBuilder::add_operand(int input) { return add_view(input, view_of(input)); }

int ElementwiseBuilder::add_channel_operand(int input, bool prelu) {
  return add_view(input, channel_view(view_of(input), call_.outputs[0], prelu));
}

void ElementwiseBuilder::add_step(const std::string& op, const std::vector<double>& values, int operand) {
  steps_.steps_.push_back({block_function(step_function(what_, op, values, operand >= 0)), operand,
                           values.empty() ? 0.0f : static_cast<float>(values[0]),
                           values.size() < 2 ? 0.0f : static_cast<float>(values[1])});
}

void ElementwiseBuilder::add_steps() {
  for (const Step& step : call_.steps) {
    if (step.input >= static_cast<int>(call_.inputs.size()))
      throw InvalidModel(text(what_, ": step '", step.function, "' names an input beyond the call's ",
                              call_.inputs.size(), ". Append its operand to the inputs."));
    const int operand = step.input < 0 ? -1 : add_channel_operand(step.input, step.function == "prelu");
    add_step(step.function, step.values, operand);
  }
}

void ElementwiseSteps::apply(const Nest& nest, const Nest::Tile& tile, const std::byte* const* inputs, ConstTileRows in,
                             TileRows out) const {
  // An operand that does not run evenly along the tile's rows is gathered first.
  alignas(64) float gathered[kTileElems];
  Block block{};
  block.rows = tile.rows;
  block.cols = tile.cols;
  block.in = in.at;
  block.ld_in = in.ld;
  block.out = out.at;
  block.ld_out = out.ld;
  for (const Resolved& step : steps_) {
    block.c0 = step.c0;
    block.c1 = step.c1;
    block.operand = nullptr;
    if (step.operand >= 0) {
      const auto operand = static_cast<size_t>(step.operand);
      const float* from = reinterpret_cast<const float*>(inputs[inputs_[operand - 1]]) + tile.offsets[operand];
      const int64_t row_stride = nest.row_stride(operand), col_stride = nest.col_stride(operand);
      block.operand = from;
      block.ld_operand = row_stride;
      block.col_step = col_stride;
      if (col_stride != 0 && col_stride != 1) {
        for (int64_t r = 0; r < tile.rows; ++r)
          for (int64_t c = 0; c < tile.cols; ++c) gathered[r * tile.cols + c] = from[r * row_stride + c * col_stride];
        block.operand = gathered;
        block.ld_operand = tile.cols;
        block.col_step = 1;
      }
    }
    step.map(block);
    block.in = out.at;
    block.ld_in = out.ld;
  }
}

void scatter(const Nest& nest, const Nest::Tile& tile, TileRows from, float* output) {
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t c = 0; c < tile.cols; ++c)
      output[tile.offsets[0] + r * nest.row_stride(0) + c * nest.col_stride(0)] = from.at[r * from.ld + c];
}

}  // namespace hetnn::kernels
