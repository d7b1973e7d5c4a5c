// Runs products of i8 rows with packed panels.
#include "hetnn/kernels/gemm/integer_product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/base/steps.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/query/terms.h"
#include "hetnn/ops/integers.h"

namespace hetnn::kernels {
namespace {

int64_t columns_of(const PanelShape& shape) { return shape.groups * shape.panels_per_group() * kPanel; }

// Where a filter's column is, counted over whole panels.
int64_t column_of(const PanelShape& shape, int64_t filter) {
  return filter / shape.cols * shape.panels_per_group() * kPanel + filter % shape.cols;
}

double one_of(const KernelCall& call, const std::string& name) { return call.params.reals(name)[0]; }

int32_t zero_of(const KernelCall& call, const std::string& name) {
  return static_cast<int32_t>(call.params.integers(name)[0]);
}

bool has_one_zero(const KernelCall& call, const std::string& name) {
  const std::vector<int64_t> values = call.params.integers(name);
  return !values.empty() && std::ranges::all_of(values, [&](int64_t value) { return value == values[0]; });
}

// The sum of bytes that a step is, the quickest way chosen.
ByteSum byte_sum_of(const Step& step) {
  const auto scale = [&](size_t k) { return static_cast<float>(step.values[2 * k]); };
  const auto zero = [&](size_t k) { return static_cast<int32_t>(step.values[2 * k + 1]); };
  ByteSum out = {scale(0), scale(1), scale(2), zero(0), zero(1), zero(2)};
  out.choose();
  return out;
}

// A bias, integers or reals, as reals.
void place_real_bias(const KernelCall& call, const std::byte* bias, const PanelShape& shape, float* to) {
  const bool is_real = call.inputs[2].dtype == DType::f32;
  const std::vector<double> scales = is_real ? std::vector<double>{1} : call.params.reals("bias.scales");
  for (int64_t filter = 0; filter < shape.groups * shape.cols; ++filter) {
    const double scale = scales[scales.size() == 1 ? 0 : static_cast<size_t>(filter)];
    to[column_of(shape, filter)] = is_real ? reinterpret_cast<const float*>(bias)[filter]
                                           : static_cast<float>(scale * reinterpret_cast<const int32_t*>(bias)[filter]);
  }
}

}  // namespace

bool has_real_sums(const KernelCall& call) { return call.outputs[0].dtype == DType::f32; }

Refusal refuse_layer_scales(const KernelCall& call, const ProductOperands& operands) {
  const std::string x = text(operands.rows, "."), w = text(operands.columns, ".");
  Terms terms("a layer of integers", call);
  const DType to = call.outputs[0].dtype;
  terms.hold(to == DType::i8 || to == DType::f32, "writes i8 or f32; got ", dtype_name(to));
  for (const std::string& value : {x, w, std::string("y.")}) {
    if (value == "y." && has_real_sums(call)) continue;
    terms.hold(call.params.has(value + "scales"), "reads and writes quantized values; got none as ", value, "scales");
    if (terms.met())
      terms.hold(has_one_zero(call, value + "zeros"), "takes one zero point for all of ", value, "zeros");
    if (terms.met() && value != w)
      terms.hold(call.params.reals(value + "scales").size() == 1, "takes one scale for all of ", value, "scales; got ",
                 call.params.reals(value + "scales").size());
  }
  if (!terms.met()) return terms;
  return terms
      .hold(call.params.reals(w + "scales").size() == 1 || call.params.integer(w + "axis", 0) == 0,
            "takes one scale for all of a weight, or one for each filter")
      .hold(call.params.integer("bias", 0) == 0 || call.params.has("bias.scales") ||
                (has_real_sums(call) && call.inputs[2].dtype == DType::f32),
            "takes quantized biases, or reals where the result is such")
      .hold(!call.params.has("bias.zeros") ||
                (has_one_zero(call, "bias.zeros") && call.params.integers("bias.zeros")[0] == 0),
            "takes biases with the zero point 0");
}

Refusal refuse_integer_steps(const KernelCall& call) {
  Terms terms("a layer of integers", call);
  if (has_real_sums(call)) return terms.steps_on_rows();
  const TensorView& y = call.outputs[0];
  bool sums = false;
  for (const Step& step : call.steps) {
    if (step.function != kSumOfI8) {
      const size_t bounds = step.function == "clamp" ? 2 : 0;
      terms.hold(step.function == "relu" || bounds > 0, "takes the steps relu, clamp and sums; got ", step.function)
          .hold(step.values.size() == bounds, "takes ", bounds, " bounds with ", step.function);
      continue;
    }
    const bool is_there = step.input >= 0 && static_cast<size_t>(step.input) < call.inputs.size();
    terms.hold(!std::exchange(sums, true), "takes one sum")
        .hold(is_there && step.values.size() == 6, "takes one operand of a sum, and three scales and zero points");
    if (!terms.met()) break;
    const TensorView& other = call.inputs[static_cast<size_t>(step.input)];
    terms.is(other, DType::i8, "the operand of a sum")
        .hold(std::ranges::equal(other.shape(), y.shape()) && other.layout == y.layout,
              "takes an operand of a sum that lies as the result does; got ", view_text(other), " for ", view_text(y))
        .then([&]() -> Refusal {
          if (byte_sum_of(step).run != nullptr) return std::nullopt;
          return "the scales of a sum behind a layer of integers have no quick way.";
        });
  }
  return terms;
}

LayerScales::LayerScales(const KernelCall& call, const ProductOperands& operands) {
  const std::string x = text(operands.rows, "."), w = text(operands.columns, ".");
  if (const std::optional<Rounding> named = rounding_named(call.params.text("q_rounding", ""))) rounding = *named;
  divisor = call.params.integer("q_divisor", 1);
  x_scale = one_of(call, x + "scales");
  x_zero = zero_of(call, x + "zeros");
  if (!has_real_sums(call)) {
    y_scale = one_of(call, "y.scales");
    y_zero = zero_of(call, "y.zeros");
  }
  weight = call.params.reals(w + "scales");
  weight_zero = zero_of(call, w + "zeros");
}

int32_t LayerScales::bias_of(int64_t filter, int32_t bias, double scale) const {
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(std::clamp(ops::bias_in_sums(bias, scale, weight_scale(filter) * x_scale), kLow, kHigh));
}

IntegerEnds::IntegerEnds(const KernelCall& call, const LayerScales& scales) {
  x_zero = scales.x_zero;
  zero = scales.y_zero;
  low = std::numeric_limits<int8_t>::min();
  high = std::numeric_limits<int8_t>::max();
  if (has_real_sums(call)) return;
  int32_t least = low, most = high;  // so far
  for (const Step& step : call.steps) {
    if (step.function == kSumOfI8) {
      sum = IntegerSum(call, step);
      low = std::exchange(least, std::numeric_limits<int8_t>::min());
      high = std::exchange(most, std::numeric_limits<int8_t>::max());
      continue;
    }
    // A bound of the result stands at an integer of its scale.
    const auto integer = [&](double bound) {
      return int32_t{
          integer_of<int8_t>(static_cast<float>(bound), sum ? sum.scale() : scales.y_scale, sum ? sum.zero() : zero)};
    };
    const bool is_relu = step.function == "relu";
    for (int32_t* bound : {&least, &most}) {
      *bound = std::max(*bound, integer(is_relu ? 0 : step.values[0]));
      if (!is_relu) *bound = std::min(*bound, integer(step.values[1]));
    }
  }
  if (sum) {
    sum.bound(least, most);
  } else {
    low = least;
    high = most;
  }
}

IntegerSum::IntegerSum(const KernelCall& call, const Step& step)
    : sum_(byte_sum_of(step)), input_(step.input), ld_(row_view(call.inputs[static_cast<size_t>(step.input)]).pitch) {
  HETNN_ASSERT(*this, "a sum without a quick way");
}

void IntegerSum::bound(int32_t low, int32_t high) {
  sum_.low = low;
  sum_.high = high;
}

void IntegerSum::add(const int8_t* operand, int8_t* out, int64_t ld_out, Share rows, Share cols) const {
  int8_t* const to = out + rows.begin * ld_out + cols.begin;
  sum_.run(sum_, {.a = to,
                  .b = operand + rows.begin * ld_ + cols.begin,
                  .y = to,
                  .ld_a = ld_out,
                  .ld_b = ld_,
                  .ld_y = ld_out,
                  .rows = rows.end - rows.begin,
                  .n = cols.end - cols.begin});
}

Refusal IntegerProduct::serves(const PanelShape& shape, const KernelCall& call, const ProductOperands& operands) {
  // The largest sums of so many products of bytes, one of them less its zero point, still are of 32 bits.
  constexpr int64_t kMostProducts = 1 << 16;
  return Terms("a layer of integers", call)
      .hold(shape.taps * shape.k <= kMostProducts, "sums at most ", kMostProducts, " products; got ",
            shape.taps * shape.k)
      .then([&] { return refuse_layer_scales(call, operands); })
      .then([&] { return refuse_integer_steps(call); });
}

IntegerProduct::IntegerProduct(const PanelShape& shape, const KernelCall& call, const LayerScales& scales)
    : shape_(shape),
      micro_(&integer_micro_table()),
      split_(shape, micro_->max_rows, micro_->max_rows[2] > 0 && shape.panels_per_group() > 1 ? 2 : 1),
      ends_(call, scales),
      weight_zero_(scales.weight_zero),
      rounding_(scales.rounding),
      by_tiles_(reads_even_rows(shape)),
      reals_(has_real_sums(call)) {
  if (reals_) epilogue_ = EpiloguePlan(call, call.outputs[0]);
  const double most = *std::ranges::max_element(scales.weight);
  below_one_ = most * scales.x_scale / scales.y_scale < 1;
  in_registers_ =
      !reals_ && micro_->finishes && rounding_ == Rounding::half_even_fp32 && weight_zero_ == 0 && below_one_;
}

IntegerRun IntegerProduct::run_on(const std::byte* const* inputs, const std::byte* packed, const std::byte* bias,
                                  std::byte* out, int64_t ld_out) const {
  return {.packed = packed,
          .bias = reinterpret_cast<const int32_t*>(bias),
          .out = reals_ ? nullptr : reinterpret_cast<int8_t*>(out),
          .reals = reals_ ? reinterpret_cast<float*>(out) : nullptr,
          .ld_out = ld_out,
          .operand = ends_.sum.operand(inputs),
          .inputs = inputs};
}

IntegerProduct::Columns IntegerProduct::columns_of_weight(const std::byte* packed) const {
  const auto* sums = reinterpret_cast<const int32_t*>(packed + shape_.packed_bytes());
  const auto* factors = reinterpret_cast<const float*>(sums + columns_of(shape_));
  return {sums, factors, reinterpret_cast<const int32_t*>(factors + columns_of(shape_))};
}

IntegerFinish IntegerProduct::finish_of(const IntegerRun& run) const {
  IntegerFinish finish{};
  finish.zero = ends_.zero;
  finish.low = ends_.low;
  finish.high = ends_.high;
  finish.ld_out = run.ld_out;
  return finish;
}

void IntegerProduct::run(const IntegerRun& run, int thread, int threads, std::byte* scratch) const {
  if (by_tiles_) return run_tiles(run, thread, threads, scratch);
  alignas(64) int32_t sums[kMaxIntegerSums];
  const int64_t panel_bytes = shape_.panel_bytes();
  const Columns of = columns_of_weight(run.packed);
  IntegerTile tile{};
  tile.taps = shape_.taps;
  tile.k = shape_.whole_steps ? shape_.steps() * shape_.step() : shape_.k;
  tile.panel_stride = panel_bytes;
  tile.sums = sums;
  int32_t row_terms[kMaxIntegerRows];
  IntegerFinish finish = finish_of(run);
  finish.row_terms = weight_zero_ == 0 ? nullptr : row_terms;
  finish.sums = sums;
  finish.turned = ends_.x_zero + micro_->turn;
  if (in_registers_) tile.finish = &finish;
  const Share columns = run.operand == nullptr ? Share{} : split_.columns_of(thread, threads);
  split_.for_share(*run.source, thread, threads, scratch, [&](const TilePlace& place) {
    tile.rows = place.rows;
    tile.rows_stride = place.rows_stride;
    tile.row_offset = place.row_offset_bytes;
    tile.panel = run.packed + place.panel * panel_bytes;
    tile.prefetch = run.packed + place.fetch_begin_bytes;
    tile.prefetch_step = place.fetch_step_bytes;
    const int64_t column = place.panel * kPanel;
    finish.bias = run.bias == nullptr || reals_ ? nullptr : run.bias + column;
    finish.column_sums = of.sums + column;
    finish.factors = of.factors + column;
    if (!reals_) finish.out = run.out + place.row * run.ld_out + place.col;
    finish.cols = place.cols;
    micro_->run[place.panels][place.count](tile);
    if (tile.finish == nullptr) {
      if (weight_zero_ != 0) sum_rows(place, row_terms);
      finish.ld_sums = place.panels * kPanel;
      finish.rows = place.count;
      finish_block(finish, run, {place.row, place.col, column, of.shifts + column});
    }
    // Of these rows all columns of the share are there, in the second-level cache.
    if (run.operand != nullptr && place.col + place.cols == columns.end)
      ends_.sum.add(run.operand, run.out, run.ld_out, {place.row, place.row + place.count}, columns);
  });
}

void IntegerProduct::finish(const IntegerRun& run, const RawSums& of) const {
  HETNN_ASSERT(shape_.groups == 1 && weight_zero_ == 0);
  const Columns columns = columns_of_weight(run.packed);
  IntegerFinish finish = finish_of(run);
  finish.sums = of.sums;
  finish.ld_sums = of.ld_sums;
  finish.turned = ends_.x_zero;
  finish.bias = run.bias == nullptr || reals_ ? nullptr : run.bias + of.cols.begin;
  finish.column_sums = columns.sums + of.cols.begin;
  finish.factors = columns.factors + of.cols.begin;
  finish.row_terms = nullptr;
  if (!reals_) finish.out = run.out + of.rows.begin * run.ld_out + of.cols.begin;
  finish.rows = of.rows.end - of.rows.begin;
  finish.cols = of.cols.end - of.cols.begin;
  finish_block(finish, run, {of.rows.begin, of.cols.begin, of.cols.begin, columns.shifts + of.cols.begin});
}

int32_t IntegerProduct::row_term(const std::byte* row, const int64_t* taps) const {
  int32_t sum = 0;
  for (int64_t tap = 0; tap < shape_.taps; ++tap) {
    const auto* x = reinterpret_cast<const int8_t*>(row + taps[tap]);
    for (int64_t k = 0; k < shape_.k; ++k) sum += x[k];
  }
  return term_of(sum);
}

// The same of a tile's rows.
void IntegerProduct::sum_rows(const TilePlace& place, int32_t* terms) const {
  for (int64_t r = 0; r < place.count; ++r) {
    int32_t sum = 0;
    for (int64_t tap = 0; tap < shape_.taps; ++tap) {
      const auto* row =
          reinterpret_cast<const int8_t*>(place.rows[tap * place.rows_stride + r] + place.row_offset_bytes);
      for (int64_t k = 0; k < shape_.k; ++k) sum += row[k];
    }
    terms[r] = term_of(sum);
  }
}

void IntegerProduct::finish_block(const IntegerFinish& finish, const IntegerRun& run, Place place) const {
  if (reals_) {
    const float* bias = run.bias == nullptr ? nullptr : reinterpret_cast<const float*>(run.bias) + place.column;
    float* const out = run.reals + place.row * run.ld_out + place.col;
    micro_->finish_reals(finish, {bias, out});
    if (!epilogue_.empty())
      epilogue_.apply(out, run.ld_out, finish.rows, finish.cols, place.row, place.col, run.inputs);
  } else if (rounding_ == Rounding::half_even_fp32) {
    micro_->finish(finish);
  } else {
    finish_fixed(finish, place.shifts);
  }
}

void IntegerProduct::finish_fixed(const IntegerFinish& f, const int32_t* shifts) const {
  const FixedPoint result{rounding_, ends_.zero, ends_.low, ends_.high};
  for (int64_t c = 0; c < f.cols; ++c) {
    const Requant factor{std::bit_cast<int32_t>(f.factors[c]), shifts[c]};
    const int32_t base =
        f.column_sums == nullptr ? 0 : (f.bias == nullptr ? 0 : f.bias[c]) - f.turned * f.column_sums[c];
    for (int64_t r = 0; r < f.rows; ++r) {
      const int32_t sum = f.sums[r * f.ld_sums + c] + base + (f.row_terms == nullptr ? 0 : f.row_terms[r]);
      f.out[r * f.ld_out + c] = result(sum, factor);
    }
  }
}

int64_t IntegerProduct::packed_bytes(const PanelShape& shape, int input) {
  return input == 2 ? columns_of(shape) * 4 : shape.packed_bytes() + columns_of(shape) * 12;
}

std::vector<std::byte> IntegerProduct::pack(const PanelShape& shape, const KernelCall& call, int input,
                                            std::span<const std::byte> weight, const PackStrides& strides) {
  const LayerScales scales(call);
  std::vector<std::byte> packed(static_cast<size_t>(packed_bytes(shape, input)));
  if (input == 2 && has_real_sums(call)) {
    place_real_bias(call, weight.data(), shape, reinterpret_cast<float*>(packed.data()));
    return packed;
  }
  if (input == 2) {
    const auto place = [&](int64_t filter) { return column_of(shape, filter); };
    place_bias(call, weight.data(), shape.groups * shape.cols, place, reinterpret_cast<int32_t*>(packed.data()));
    return packed;
  }
  const int64_t panels = shape.groups * shape.panels_per_group();
  pack_share(shape, {0, panels}, scales, reinterpret_cast<const int8_t*>(weight.data()), strides, packed.data());
  return packed;
}

void IntegerProduct::pack_share(const PanelShape& shape, Share panels, const LayerScales& scales, const int8_t* weight,
                                const PackStrides& strides, std::byte* packed) {
  auto* column_sums = reinterpret_cast<int32_t*>(packed + shape.packed_bytes());
  auto* factors = column_sums + columns_of(shape);
  auto* shifts = factors + columns_of(shape);
  const IntegerMicroTable& micro = integer_micro_table();
  const bool one_factor = scales.weight.size() == 1;
  const Requant first_factor = scales.factor(0);
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const int64_t group = panel / shape.panels_per_group(), first = panel % shape.panels_per_group() * kPanel;
    std::byte* const to = packed + panel * shape.panel_bytes();
    // Rows that lie side by side, as those of a right operand do, go in sixteens.
    const bool in_rows = strides.col == 1 && shape.taps == 1 && first + kPanel <= shape.cols && shape.k % 4 == 0;
    if (in_rows) {
      const int8_t* from = weight + group * strides.group + first;
      for (int64_t k = 0; k < shape.k; k += 4) micro.interleave(from + k * strides.k, strides.k, to + k * kPanel);
    } else {
      pack_panels(shape, {panel, panel + 1}, weight, strides, reinterpret_cast<int8_t*>(packed));
    }
    micro.sum_columns(to, shape.taps * shape.steps(), column_sums + panel * kPanel);
    for (int64_t c = 0; c < kPanel; ++c) {
      const bool is_filter = first + c < shape.cols;
      const Requant factor = !is_filter   ? Requant()
                             : one_factor ? first_factor
                                          : scales.factor(group * shape.cols + first + c);
      factors[panel * kPanel + c] = factor.multiplier;
      shifts[panel * kPanel + c] = factor.shift;
    }
  }
}

}  // namespace hetnn::kernels
