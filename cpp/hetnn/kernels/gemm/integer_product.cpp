// Runs products of i8 rows with packed panels.
#include "hetnn/kernels/gemm/integer_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "hetnn/base/error.h"
#include "hetnn/base/steps.h"
#include "hetnn/kernels/row_view.h"
#include "hetnn/ops/integers.h"

namespace hetnn::kernels {
namespace {

int64_t columns_of(const PanelShape& shape) { return shape.groups * shape.panels_per_group() * kPanel; }

// Where a filter's column is, counted over whole panels.
int64_t column_of(const PanelShape& shape, int64_t filter) {
  return filter / shape.cols * shape.panels_per_group() * kPanel + filter % shape.cols;
}

double one_of(const KernelCall& call, const char* name) {
  const std::vector<double> values = call.params.reals(name);
  if (values.size() != 1)
    throw Unsupported(text("integer layers take one scale for all of ", name, "; got ", values.size(),
                           ". Use the operator's meaning."));
  return values[0];
}

int32_t zero_of(const KernelCall& call, const char* name) {
  const std::vector<int64_t> values = call.params.integers(name);
  if (!std::ranges::all_of(values, [&](int64_t value) { return value == values[0]; }))
    throw Unsupported(text("integer layers take one zero point for all of ", name, ". Use the operator's meaning."));
  return static_cast<int32_t>(values[0]);
}

}  // namespace

LayerScales::LayerScales(const KernelCall& call) {
  for (const char* operand : {"x.scales", "weight.scales", "y.scales"}) {
    if (!call.params.has(operand))
      throw Unsupported(text("integer layers read and write quantized values; got none as ", operand, "."));
  }
  if (call.params.text("q_rounding", "half_even_fp32") != "half_even_fp32")
    throw Unsupported(text("integer layers round by half_even_fp32; got ", call.params.text("q_rounding"),
                           ". Use the operator's meaning."));
  x_scale = one_of(call, "x.scales");
  y_scale = one_of(call, "y.scales");
  x_zero = zero_of(call, "x.zeros");
  y_zero = zero_of(call, "y.zeros");
  weight = call.params.reals("weight.scales");
  if (zero_of(call, "weight.zeros") != 0) throw Unsupported("integer layers take weights with the zero point 0.");
  if (weight.size() > 1 && call.params.integer("weight.axis", 0) != 0)
    throw Unsupported("integer layers take one scale for all of a weight, or one for each filter.");
  if (call.params.has("bias.zeros") && zero_of(call, "bias.zeros") != 0)
    throw Unsupported("integer layers take biases with the zero point 0.");
}

int32_t LayerScales::bias_of(int64_t filter, int32_t bias, double scale) const {
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::clamp(ops::bias_in_sums(bias, scale, weight_scale(filter) * x_scale), kLow, kHigh));
}

IntegerEnds::IntegerEnds(const KernelCall& call) {
  const LayerScales scales(call);
  x_zero = scales.x_zero;
  zero = scales.y_zero;
  low = std::numeric_limits<int8_t>::min();
  high = std::numeric_limits<int8_t>::max();
  for (const Step& step : call.steps) {
    if (step.function != "relu" && step.function != "clamp")
      throw Unsupported(text("integer layers take the steps relu and clamp; got ", step.function, "."));
    // A bound of the result stands at an integer of its scale.
    const auto integer = [&](double bound) {
      return int32_t{integer_of<int8_t>(static_cast<float>(bound), scales.y_scale, zero)};
    };
    const bool is_relu = step.function == "relu";
    for (int32_t* bound : {&low, &high}) {
      *bound = std::max(*bound, integer(is_relu ? 0 : step.values[0]));
      if (!is_relu) *bound = std::min(*bound, integer(step.values[1]));
    }
  }
}

IntegerProduct::IntegerProduct(const PanelShape& shape, const KernelCall& call)
    : shape_(shape),
      micro_(&integer_micro_table()),
      split_(shape, micro_->max_rows, micro_->max_rows[2] > 0 && shape.panels_per_group() > 1 ? 2 : 1),
      ends_(call) {}

IntegerRun IntegerProduct::run_on(const std::byte* const* /*inputs*/, const std::byte* packed, const std::byte* bias,
                                  std::byte* out, int64_t ld_out) const {
  return {.packed = packed,
          .bias = reinterpret_cast<const int32_t*>(bias),
          .out = reinterpret_cast<int8_t*>(out),
          .ld_out = ld_out};
}

void IntegerProduct::run(const IntegerRun& run, int thread, int threads, std::byte* scratch) const {
  alignas(64) int32_t sums[kMaxIntegerSums];
  const int64_t panel_bytes = shape_.panel_bytes();
  const auto* column_sums = reinterpret_cast<const int32_t*>(run.packed + shape_.packed_bytes());
  const auto* factors = reinterpret_cast<const float*>(column_sums + columns_of(shape_));
  IntegerTile tile{};
  tile.taps = shape_.taps;
  tile.k = shape_.k;
  tile.panel_stride = panel_bytes;
  tile.sums = sums;
  IntegerFinish finish{};
  finish.sums = sums;
  finish.turned = ends_.x_zero + micro_->turn;
  finish.zero = ends_.zero;
  finish.low = ends_.low;
  finish.high = ends_.high;
  finish.ld_out = run.ld_out;
  split_.for_share(*run.source, thread, threads, scratch, [&](const TilePlace& place) {
    tile.rows = place.rows;
    tile.rows_stride = place.rows_stride;
    tile.row_offset = place.row_offset_bytes;
    tile.panel = run.packed + place.panel * panel_bytes;
    tile.prefetch = place.fetched < 0 ? tile.panel : run.packed + place.fetched * panel_bytes;
    tile.prefetch_step = place.fetched < 0 ? 0 : kPanel * 4;
    micro_->run[place.panels][place.count](tile);
    const int64_t column = place.panel * kPanel;
    finish.ld_sums = place.panels * kPanel;
    finish.bias = run.bias == nullptr ? nullptr : run.bias + column;
    finish.column_sums = column_sums + column;
    finish.factors = factors + column;
    finish.out = run.out + place.row * run.ld_out + place.col;
    finish.rows = place.count;
    finish.cols = place.cols;
    micro_->finish(finish);
  });
}

int64_t IntegerProduct::packed_bytes(const PanelShape& shape, int input) {
  return input == 2 ? columns_of(shape) * 4 : shape.packed_bytes() + columns_of(shape) * 8;
}

std::vector<std::byte> IntegerProduct::pack(const PanelShape& shape, const KernelCall& call, int input,
                                            std::span<const std::byte> weight, const PackStrides& strides) {
  const LayerScales scales(call);
  std::vector<std::byte> packed(static_cast<size_t>(packed_bytes(shape, input)));
  if (input == 2) {
    const auto place = [&](int64_t filter) { return column_of(shape, filter); };
    place_bias(call, weight.data(), shape.groups * shape.cols, place, reinterpret_cast<int32_t*>(packed.data()));
    return packed;
  }
  const auto* from = reinterpret_cast<const int8_t*>(weight.data());
  pack_panels(shape, from, strides, reinterpret_cast<int8_t*>(packed.data()));
  auto* column_sums = reinterpret_cast<int32_t*>(packed.data() + shape.packed_bytes());
  auto* factors = reinterpret_cast<float*>(column_sums + columns_of(shape));
  for (int64_t filter = 0; filter < shape.groups * shape.cols; ++filter) {
    const int64_t column = column_of(shape, filter);
    const int8_t* row = from + filter / shape.cols * strides.group + filter % shape.cols * strides.col;
    for (int64_t tap = 0; tap < shape.taps; ++tap)
      for (int64_t k = 0; k < shape.k; ++k) column_sums[column] += row[tap * strides.tap + k * strides.k];
    factors[column] = scales.factor(filter);
  }
  return packed;
}

}  // namespace hetnn::kernels
