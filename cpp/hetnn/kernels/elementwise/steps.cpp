// Elementwise operations one after the other on a tile.
#include "hetnn/kernels/elementwise/steps.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/elementwise/nary_narrow_ops.h"
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

ElementwiseBuilder::ElementwiseBuilder(const KernelCall& call, std::string_view what)
    : call_(call),
      what_(what),
      operands_{broadcast_operand(call.outputs[0], call.outputs[0].shape(), text(what, ": the output"))} {}

ElementwiseBuilder::ElementwiseBuilder(const KernelCall& call, std::string_view what, const NestOperand& read)
    : ElementwiseBuilder(call, what) {
  operands_.push_back(read);
  steps_.inputs_.push_back(0);
}

int ElementwiseBuilder::add_view(int input, const TensorView& view) {
  operands_.push_back(broadcast_operand(view, call_.outputs[0].shape(), what_));
  steps_.inputs_.push_back(input);
  return static_cast<int>(operands_.size()) - 1;
}

int ElementwiseBuilder::add_operand(int input) { return add_view(input, view_of(input)); }

int ElementwiseBuilder::add_channel_operand(int input, bool prelu) {
  return add_view(input, channel_view(view_of(input), call_.outputs[0], prelu));
}

void ElementwiseBuilder::add_step(const std::string& op, const std::vector<double>& values, int operand) {
  steps_.steps_.push_back({block_function(*ops::function_from_name(op)), operand,
                           values.empty() ? 0.0f : static_cast<float>(values[0]),
                           values.size() < 2 ? 0.0f : static_cast<float>(values[1])});
}

void ElementwiseBuilder::add_steps() {
  for (const Step& step : call_.steps) {
    const int count = operand_count(step);
    int first = -1;
    for (int k = 0; k < count; ++k) {
      const int operand = add_channel_operand(step.input + k, step.function == "prelu");
      if (k == 0) first = operand;
    }
    if (const std::optional<DType> to = conversion_of(step)) {
      if (is_narrow_float(*to)) steps_.steps_.push_back({round_function(*to), -1, 0, 0});
    } else if (is_sum(step)) {
      steps_.steps_.push_back({nullptr, first, 0, 0, SumStep(step, call_.params.integer("fan_in", 0))});
    } else {
      add_step(step.function, step.values, first);
    }
  }
}

void ElementwiseSteps::apply(const Nest& nest, const Nest::Tile& tile, const std::byte* const* inputs, ConstTileRows in,
                             TileRows out) const {
  apply(tile.rows, tile.cols, inputs, in, out, [&](size_t operand) {
    return Place{tile.offsets[operand], nest.row_stride(operand), nest.col_stride(operand)};
  });
}

void ElementwiseSteps::apply_in_place(const Nest& nest, const Nest::Tile& tile, const std::byte* const* inputs,
                                      float* output) const {
  if (empty()) return;
  float* first = output + tile.offsets[0];
  const int64_t ld = nest.row_stride(0), step = nest.col_stride(0);
  if (step == 1) return apply(nest, tile, inputs, {first, ld}, {first, ld});
  alignas(64) float gathered[kTileElems];
  HETNN_ASSERT(tile.rows * tile.cols <= kTileElems, "a tile of ", tile.rows * tile.cols, " elements");
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t c = 0; c < tile.cols; ++c) gathered[r * tile.cols + c] = first[r * ld + c * step];
  const TileRows rows{gathered, tile.cols};
  apply(nest, tile, inputs, {rows.at, rows.ld}, rows);
  scatter(nest, tile, rows, output);
}

void ElementwiseSteps::run(const Resolved& step, const SumStep::Operand* operands, Block block) {
  if (step.sum)
    return step.sum->apply(block.in, block.ld_in, block.out, block.ld_out, block.rows, block.cols, operands);
  block.c0 = step.c0;
  block.c1 = step.c1;
  if (step.operand >= 0) return apply_binary(step, *operands, block);
  step.map(block);
}

void ElementwiseSteps::apply_binary(const Resolved& step, const SumStep::Operand& operand, Block block) {
  const auto* values = static_cast<const float*>(operand.at);
  block.operand = values;
  block.ld_operand = operand.ld;
  block.col_step = operand.step;
  if (operand.step == 0 || operand.step == 1) return step.map(block);
  // What does not run evenly along the tile's rows is gathered first, as much at a time as there is room.
  alignas(64) float gathered[kTileElems];
  const Block whole = block;
  block.rows = 1;
  block.operand = gathered;
  block.col_step = 1;
  for (int64_t r = 0; r < whole.rows; ++r) {
    for (int64_t c = 0; c < whole.cols; c += kTileElems) {
      block.cols = std::min(kTileElems, whole.cols - c);
      block.in = whole.in + r * whole.ld_in + c;
      block.out = whole.out + r * whole.ld_out + c;
      for (int64_t k = 0; k < block.cols; ++k) gathered[k] = values[r * operand.ld + (c + k) * operand.step];
      step.map(block);
    }
  }
}

void scatter(const Nest& nest, const Nest::Tile& tile, TileRows from, float* output) {
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t c = 0; c < tile.cols; ++c)
      output[tile.offsets[0] + r * nest.row_stride(0) + c * nest.col_stride(0)] = from.at[r * from.ld + c];
}

}  // namespace hetnn::kernels
