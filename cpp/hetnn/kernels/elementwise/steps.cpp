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

void ElementwiseBuilder::add_step(const Step& step, bool lie) {
  const int count = operand_count(step);
  int first = -1;
  for (int k = 0; k < count; ++k) {
    const bool slopes = step.function == "prelu";
    const int input = step.input + k;
    const int operand = lie && !slopes ? add_operand(input) : add_channel_operand(input, slopes);
    if (k == 0) first = operand;
  }
  const std::optional<DType> to = conversion_of(step);
  steps_.mixed_ |= is_mixed(step);
  if (to && step.dtype != DType::boolean) {
    if (is_narrow_float(*to)) steps_.steps_.push_back({round_function(*to), -1});
  } else if (is_sum(step)) {
    steps_.steps_.push_back(
        {.map = nullptr, .operand = first, .sum = SumStep(step, call_.params.integer("fan_in", 0))});
  } else if (is_mixed(step)) {
    steps_.steps_.push_back({.map = nullptr, .operand = first, .mixed = MixedStep(step)});
  } else {
    steps_.steps_.push_back({block_function(*ops::function_from_name(step.function)), first,
                             step.values.empty() ? 0.0f : static_cast<float>(step.values[0]),
                             step.values.size() < 2 ? 0.0f : static_cast<float>(step.values[1])});
  }
}

void ElementwiseBuilder::add_steps() {
  for (const Step& step : call_.steps) add_step(step);
}

void ElementwiseSteps::apply(const Nest& nest, const Nest::Tile& tile, const std::byte* const* inputs, ConstTileRows in,
                             TileRows out) const {
  apply(tile.rows, tile.cols, inputs, in, out, [&](size_t operand) {
    return Place{tile.offsets[operand], nest.row_stride(operand), nest.col_stride(operand)};
  });
}

void ElementwiseSteps::apply_mixed(const Nest& nest, const Nest::Tile& tile, const std::byte* const* inputs,
                                   const TileIn& in, const TileOut& out) const {
  const auto place_of = [&](size_t operand) {
    return Place{tile.offsets[operand], nest.row_stride(operand), nest.col_stride(operand)};
  };
  apply_mixed(tile.rows, tile.cols, inputs, in, out, erased(place_of));
}

void ElementwiseSteps::apply_mixed(int64_t rows, int64_t cols, const std::byte* const* inputs, const TileIn& in,
                                   const TileOut& out, PlaceOf place_of) const {
  for_stretches(rows, cols, in, out, [&](int64_t r, int64_t c, int64_t lines, int64_t width, MixedStretch stretch) {
    SumStep::Operand operands[kMaxNaryInputs];
    bool is_truth = stretch.in == nullptr;
    for (const Resolved& step : steps_) {
      for (size_t k = 0; k < step.operands(); ++k) {
        const size_t operand = static_cast<size_t>(step.operand) + k;
        const Place place = place_of.call(place_of.self, operand);
        const int64_t at = place.offset + r * place.ld + c * place.step;
        operands[k] = {inputs[inputs_[operand - 1]] + at * step.operand_bytes(k), place.ld, place.step};
      }
      if (step.mixed) {
        step.mixed->apply(stretch.in, stretch.ld_in, stretch.rows, lines, width, operands);
        is_truth = step.mixed->makes_truths();
      } else {
        run(step, operands,
            {.in = stretch.in,
             .ld_in = stretch.ld_in,
             .out = stretch.rows.at,
             .ld_out = stretch.rows.ld,
             .rows = lines,
             .cols = width});
      }
      stretch.in = stretch.rows.at;
      stretch.ld_in = stretch.rows.ld;
    }
    return is_truth;
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

namespace {

template <typename T, typename Narrow>
void write_as(const Nest& nest, const Nest::Tile& tile, TileRows from, T* output, const Narrow& narrow) {
  T row[kLongTileElems];
  const int64_t step = nest.col_stride(0);
  for (int64_t r = 0; r < tile.rows; ++r) {
    T* to = output + tile.offsets[0] + r * nest.row_stride(0);
    narrow(from.at + r * from.ld, step == 1 ? to : row, tile.cols);
    for (int64_t c = 0; step != 1 && c < tile.cols; ++c) to[c * step] = row[c];
  }
}

}  // namespace

void write_tile(const Nest& nest, const Nest::Tile& tile, TileRows from, DType dtype, std::byte* output) {
  if (dtype == DType::boolean)
    return write_as(nest, tile, from, reinterpret_cast<uint8_t*>(output), truth_ops().narrow);
  if (is_narrow_float(dtype))
    return write_as(nest, tile, from, reinterpret_cast<uint16_t*>(output), halves_conversion(dtype).narrow);
  write_as(nest, tile, from, reinterpret_cast<float*>(output),
           [](const float* row, float* to, int64_t n) { std::copy_n(row, n, to); });
}

void run_mixed(const Nest& nest, const Nest::Tile& tile, const ElementwiseSteps& steps, const std::byte* const* inputs,
               const TileIn& in, DType dtype, std::byte* output, bool over_operand) {
  alignas(64) float room[kTileElems];
  const int64_t ld = nest.row_stride(0);
  const bool direct = nest.col_stride(0) == 1 && !over_operand;
  if (direct && dtype == DType::boolean)
    return steps.apply_mixed(nest, tile, inputs, in,
                             {nullptr, reinterpret_cast<uint8_t*>(output) + tile.offsets[0], ld});
  if (direct && dtype == DType::f32)
    return steps.apply_mixed(nest, tile, inputs, in, {reinterpret_cast<float*>(output) + tile.offsets[0], nullptr, ld});
  steps.apply_mixed(nest, tile, inputs, in, {room, nullptr, tile.cols});
  write_tile(nest, tile, {room, tile.cols}, dtype, output);
}

}  // namespace hetnn::kernels
