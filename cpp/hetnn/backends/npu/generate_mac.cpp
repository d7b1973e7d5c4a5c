// Layers of the product engine, and pooling, tiled by output rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "hetnn/backends/npu/generate.h"
#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/npu/timing.h"
#include "hetnn/ops/quantized.h"

namespace hetnn::backends::npu {

using hetnn::npu::Region;

// Filters in blocks of `block`, of each block `channels` after `channels`, as [kernel row][kernel column][channel]
// [filter]; where it begins.
int64_t Generator::pack_filters(const Tensor& weight, int64_t block, int64_t channels) {
  std::byte* data = nullptr;
  const Tensor packed = Tensor::zeros(weight.dtype(), {weight.elems()}, &data);
  const std::vector<int64_t>& s = weight.shape();
  const int64_t filters = s[0], all = s[1], taps = s.size() == 4 ? s[2] * s[3] : 1;
  const auto size = static_cast<size_t>(dtype_bytes(weight.dtype()));
  for (int64_t first = 0; keep_ && first < filters; first += block) {
    for (int64_t part = 0; part < all; part += channels) {
      for (int64_t t = 0; t < taps; ++t) {
        for (int64_t c = part; c < std::min(part + channels, all); ++c) {
          for (int64_t f = first; f < std::min(first + block, filters); ++f) {
            std::memcpy(data, weight.data() + static_cast<size_t>((f * all + c) * taps + t) * size, size);
            data += size;
          }
        }
      }
    }
  }
  return constant(packed).offset_bytes;
}

// Integers of the sums' own scale, one for each filter; f32 for f16.
Place Generator::bias_of(const ir::Node& node) {
  const ir::Value& bias = *node.input(2);
  const Tensor* tensor = node.constant_input(2);
  if (dtype_ == DType::f32 || !tensor) return place_of(bias);
  // Other nodes may read the same constant in another form, so neither is remembered.
  if (dtype_ != DType::i8) return constant(ops::widen(*tensor, bias.type()));
  if (!bias.type().quant || bias.dtype() != DType::i32)
    throw Unsupported(text(ir::describe(node), ": a quantized layer's bias must be i32 with scales; got ",
                           ops::to_string(bias.type()), "."));
  const ops::Quant &x = *node.input(0)->type().quant, &w = *node.input(1)->type().quant, &b = *bias.type().quant;
  const auto in = tensor->values<int32_t>();
  std::vector<int32_t> out(in.size());
  for (size_t k = 0; k < in.size(); ++k) {
    const double steps = std::nearbyint(in[k] * (b.scale(k) / (x.scale() * w.scale(k))));
    out[k] = static_cast<int32_t>(std::clamp(steps, -0x1p31, 0x1p31 - 1));
  }
  return constant(Tensor::of<int32_t>(tensor->shape(), out));
}

Place Generator::product_factors(const ir::Node& node, int64_t count) {
  const ops::Quant &x = *node.input(0)->type().quant, &w = *node.input(1)->type().quant,
                   &y = *node.output()->type().quant;
  std::vector<double> reals(static_cast<size_t>(count));
  for (size_t k = 0; k < reals.size(); ++k) reals[k] = x.scale() * w.scale(k) / y.scale();
  return factors(node, reals);
}

ProductShape Generator::shape_of(const ir::Node& node, const Epilogue& epilogue) const {
  const Tensor* weight = node.constant_input(1);
  const Map in = map_of(*node.input(0)), out = map_of(*node.output());
  const bool windowed = weight->rank() == 4;
  return {.dtype = dtype_,
          .window = windowed ? ops::window_of(node.call()) : ops::Window(2),
          .batch = out.n,
          .in_h = in.h,
          .in_w = in.w,
          .out_h = out.h,
          .out_w = out.w,
          .groups = windowed ? node.integer("groups").value() : 1,
          .in_c = in.c,
          .out_c = out.c,
          .biased = node.input(2) != nullptr,
          .adds = epilogue.addend != nullptr,
          .is_rows = !windowed};
}

std::optional<Tile> Generator::tile_of(const ir::Node& node, const Epilogue& epilogue, const ProductShape& shape,
                                       int64_t& needed_bytes) const {
  if (packed_for_ && *packed_for_ != bindings_) {
    const ProductShape other = Generator(spec_, *packed_for_).shape_of(node, epilogue);
    const std::optional<Tile> packed = best_tile(spec_, other, needed_bytes);
    const std::optional<Tile> alike = packed ? best_tile(spec_, shape, needed_bytes, &*packed) : std::nullopt;
    if (alike) return alike;
  }
  return best_tile(spec_, shape, needed_bytes);
}

// A linear layer is a 1x1 convolution over rows of one pixel.
void Generator::conv(const ir::Node& node, const Epilogue& epilogue) {
  const Tensor* weight = node.constant_input(1);
  if (!weight)
    throw Unsupported(
        text(ir::describe(node), ": its weight is computed at run time; the NPU packs weights when compiling."));
  for (size_t k = 1; k < node.inputs().size(); ++k) {
    if (const ops::Quant* quant =
            node.input(k) && node.input(k)->type().quant ? &*node.input(k)->type().quant : nullptr;
        quant && (quant->has_zero_point() || quant->axis != 0))
      throw Unsupported(text(ir::describe(node), ": '", node.input(k)->name(),
                             "' must have the zero point 0, and scales along its first axis; got ",
                             ops::to_string(node.input(k)->type()), ". Quantize weights symmetrically."));
  }
  const bool windowed = weight->rank() == 4;
  if (!windowed && node.output()->rank() == 4) {
    throw Unsupported(text(ir::describe(node), ": the NPU's linear layers run over the last axis of up to 3; got ",
                           to_string(node.input(0)->shape()), "."));
  }
  products(node, epilogue, shape_of(node, epilogue), *weight);
}

namespace {

// One step over a tile: what of the output and of the channels, and in which buffers.
struct Step {
  int64_t n, row, rows, column, columns, filter, filters, channel, channels;
  bool loads_weights, loads_input, first_part, last_part;
  int64_t weights_at, input_at, output_at;
};

// All steps in the order of the tile. An operand is loaded where it differs from the step before, into its next buffer.
std::vector<Step> steps_of(const ProductShape& s, const Tile& t, const TileBuffers& b) {
  const int64_t input_begin = b.weights * b.weight_buffers, output_begin = input_begin + b.input * b.input_buffers;
  std::vector<Step> out;
  int64_t weight_loads = 0, input_loads = 0, stores = 0;
  const auto add = [&](int64_t n, int64_t row, int64_t column, int64_t filter) {
    const int64_t depth = s.groups == 1 ? t.channels : s.in_c;
    for (int64_t channel = 0; channel < s.in_c; channel += depth) {
      Step step{.n = n,
                .row = row,
                .rows = std::min(t.rows, s.out_h - row),
                .column = column,
                .columns = std::min(t.columns, s.out_w - column),
                .filter = filter,
                .filters = std::min(t.filters, s.out_c - filter),
                .channel = channel,
                .channels = std::min(depth, s.in_c - channel),
                .loads_weights = true,
                .loads_input = true,
                .first_part = channel == 0,
                .last_part = channel + depth >= s.in_c,
                .weights_at = 0,
                .input_at = 0,
                .output_at = 0};
      if (!out.empty()) {
        const Step& before = out.back();
        step.loads_weights =
            before.filter != filter || before.channel != channel || (s.weights_differ && before.n != n);
        step.loads_input = before.n != n || before.row != row || before.column != column || before.channel != channel ||
                           (s.groups > 1 && before.filter != filter);
      }
      weight_loads += step.loads_weights;
      input_loads += step.loads_input;
      step.weights_at = (weight_loads - 1) % b.weight_buffers * b.weights;
      step.input_at = input_begin + (input_loads - 1) % b.input_buffers * b.input;
      step.output_at = output_begin + stores % b.output_buffers * b.output;
      stores += step.last_part;
      out.push_back(step);
    }
  };
  const auto places = [&](const auto& visit) {
    for (int64_t n = 0; n < s.batch; ++n) {
      for (int64_t row = 0; row < s.out_h; row += t.rows) {
        for (int64_t column = 0; column < s.out_w; column += t.columns) visit(n, row, column);
      }
    }
  };
  const auto filters = [&](const auto& visit) {
    for (int64_t filter = 0; filter < s.out_c; filter += t.filters) visit(filter);
  };
  if (t.filters_inside) {
    places(
        [&](int64_t n, int64_t row, int64_t column) { filters([&](int64_t filter) { add(n, row, column, filter); }); });
  } else {
    filters(
        [&](int64_t filter) { places([&](int64_t n, int64_t row, int64_t column) { add(n, row, column, filter); }); });
  }
  return out;
}

}  // namespace

void Generator::products(const ir::Node& node, const Epilogue& epilogue, const ProductShape& s, const Tensor& weight) {
  int64_t needed_bytes = 0;
  const std::optional<Tile> best = tile_of(node, epilogue, s, needed_bytes);
  if (!best) does_not_fit(node, needed_bytes);
  const Tile& t = *best;
  const int64_t places = s.batch * ((s.out_h + t.rows - 1) / t.rows) * ((s.out_w + t.columns - 1) / t.columns);
  if (places * ((s.out_c + t.filters - 1) / t.filters) > static_cast<int64_t>(kMostInstructions)) too_long(node);
  const TileBuffers buffers = buffers_of(s, t);
  const std::vector<Step> steps = steps_of(s, t, buffers);
  const int64_t sums_at = buffers.total() - buffers.sums;
  const bool quantized = dtype_ == DType::i8;
  const ops::Window& w = s.window;
  const int64_t taps = w[0].kernel * w[1].kernel, group_filters = s.out_c / s.groups,
                group_channels = s.in_c / s.groups;
  const int64_t depth = s.groups == 1 ? t.channels : group_channels;
  const int64_t filters_at = pack_filters(weight, t.filters, depth);
  const Place x = place_of(*node.input(0)), y = place_of(*node.output());
  const Place addend = epilogue.addend ? place_of(*epilogue.addend) : Place();
  const int64_t bias_at = s.biased ? bias_of(node).offset_bytes : 0;
  const int64_t factors_at = quantized ? product_factors(node, s.out_c).offset_bytes : 0;
  const auto output_place = [&](const Place& of, const Step& p) {
    return Place{of.region,
                 of.offset_bytes + (((p.n * s.out_h + p.row) * s.out_w + p.column) * s.out_c + p.filter) * elem_};
  };
  const auto output_box = [&](const Step& p) { return box_of(p.rows, p.columns, p.filters, s.out_w, s.out_c); };
  // The channels that a step reads of each pixel, the first of them.
  const auto channels_of = [&](const Step& p) {
    return s.groups == 1
               ? std::pair(p.channel, p.channels)
               : std::pair(p.filter / group_filters * group_channels, p.filters / group_filters * group_channels);
  };
  run({.count = static_cast<int64_t>(steps.size()),
       .overlap = t.overlaps,
       .load =
           [&](int64_t k) {
             const Step& p = steps[static_cast<size_t>(k)];
             if (p.loads_weights) {
               const int64_t before = p.filter * taps * (s.groups == 1 ? s.in_c : group_channels) +
                                      (s.groups == 1 ? p.channel * taps * p.filters : 0);
               const int64_t count = taps * (s.groups == 1 ? p.channels : group_channels) * p.filters;
               load({Region::weights, filters_at + before * elem_}, p.weights_at, count * elem_);
               if (s.biased)
                 load({Region::weights, bias_at + p.filter * kSumBytes}, p.weights_at + buffers.bias,
                      p.filters * kSumBytes);
               if (quantized)
                 load({Region::weights, factors_at + p.filter * kFactorBytes}, p.weights_at + buffers.factors,
                      p.filters * kFactorBytes);
             }
             if (p.loads_input) {
               const Span rows = positions_read(w[0], p.row, p.rows, s.in_h),
                          columns = positions_read(w[1], p.column, p.columns, s.in_w);
               const auto [channel, channels] = channels_of(p);
               const int64_t at = ((p.n * s.in_h + rows.begin) * s.in_w + columns.begin) * s.in_c + channel;
               load({x.region, x.offset_bytes + at * elem_}, p.input_at,
                    box_of(rows.count, columns.count, channels, s.in_w, s.in_c));
             }
             if (epilogue.addend && p.last_part) load(output_place(addend, p), p.output_at, output_box(p));
           },
       .compute =
           [&](int64_t k) {
             const Step& p = steps[static_cast<size_t>(k)];
             const Span rows = positions_read(w[0], p.row, p.rows, s.in_h),
                        columns = positions_read(w[1], p.column, p.columns, s.in_w);
             const int64_t channels = channels_of(p).second,
                           step_groups = s.groups == 1 ? 1 : p.filters / group_filters;
             Picture read{rows.count, columns.count}, made{p.rows, p.columns};
             if (s.is_rows) read = made = picture_of(spec_, s, p.rows, p.filters, p.channels);
             add(hetnn::npu::Conv2d{.dtype = static_cast<int64_t>(dtype_),
                                    .act = p.last_part ? static_cast<int64_t>(epilogue.act) : 0,
                                    .has_bias = s.biased && p.last_part,
                                    .add_output = epilogue.addend != nullptr && p.last_part,
                                    .load_acc = !p.first_part,
                                    .store_acc = !p.last_part,
                                    .in_zero = zero_of(*node.input(0)),
                                    .out_zero = zero_of(*node.output()),
                                    .groups = step_groups,
                                    .in_addr = p.input_at,
                                    .in_h = read.rows,
                                    .in_w = read.columns,
                                    .in_c = channels / step_groups,
                                    .in_row_pitch = read.columns * channels * elem_,
                                    .in_pixel_pitch = channels * elem_,
                                    .out_addr = p.output_at,
                                    .out_h = made.rows,
                                    .out_w = made.columns,
                                    .out_c = p.filters / step_groups,
                                    .out_row_pitch = made.columns * p.filters * elem_,
                                    .out_pixel_pitch = p.filters * elem_,
                                    .weight_addr = p.weights_at,
                                    .bias_addr = p.weights_at + buffers.bias,
                                    .quant_addr = p.weights_at + buffers.factors,
                                    .acc_addr = sums_at,
                                    .kernel_h = w[0].kernel,
                                    .kernel_w = w[1].kernel,
                                    .stride_h = w[0].stride,
                                    .stride_w = w[1].stride,
                                    .dilation_h = w[0].dilation,
                                    .dilation_w = w[1].dilation,
                                    .pad_top = rows.pad,
                                    .pad_left = columns.pad,
                                    .clamp_lo = epilogue.clamp_lo,
                                    .clamp_hi = epilogue.clamp_hi});
           },
       .store =
           [&](int64_t k) {
             const Step& p = steps[static_cast<size_t>(k)];
             if (p.last_part) store(p.output_at, output_place(y, p), output_box(p));
           }});
}

// Windows of some rows and channels.
void Generator::pool(const ir::Node& node) {
  keeps_scale(node);
  const Map in = map_of(*node.input(0)), out = map_of(*node.output());
  const bool global = node.attrs().contains("output_size");
  if (global && (out.h != 1 || out.w != 1))
    throw Unsupported(text(ir::describe(node), ": the NPU pools adaptively to 1x1 only; got ", out.h, "x", out.w, "."));
  const ops::Window w = global ? ops::Window{{.kernel = in.h, .stride = in.h}, {.kernel = in.w, .stride = in.w}}
                               : ops::window_of(node.call());
  const bool largest = node.op().primitive == ops::Primitive::largest_pool;
  const auto most_read = [&](int64_t rows) { return w[0].most_elements(rows, in.h); };
  const auto input_bytes = [&](int64_t rows, int64_t channels) {
    return aligned(most_read(rows) * in.w * channels * elem_);
  };
  const auto output_bytes = [&](int64_t rows, int64_t channels) { return aligned(rows * out.w * channels * elem_); };
  // The most rows that fit of the most channels, twice where that can be; some rows less hide more of the transfers.
  int64_t tile = 0, channels = in.c, buffers = 1;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t c = in.c;; c = (c + 1) / 2) {
    for (int64_t rows = out.h;; rows = (rows + 1) / 2) {
      const int64_t row_steps = (out.h + rows - 1) / rows, parts = (in.c + c - 1) / c,
                    steps = out.n * row_steps * parts;
      for (const int64_t each : {steps > 1 ? 2 : 1, 1}) {
        if (each * (input_bytes(rows, c) + output_bytes(rows, c)) > spec_.scratchpad().bytes) continue;
        const auto cycles = [&](int64_t of_rows, int64_t of_columns, bool stored) {
          const bool whole = c == in.c;
          return static_cast<double>(hetnn::npu::dma_cycles(spec_, (whole ? of_rows * of_columns : 1) * c * elem_,
                                                            whole ? 1 : of_rows * of_columns, stored));
        };
        const double work = static_cast<double>(hetnn::npu::vector_cycles(
            spec_, static_cast<double>(rows * out.w * c * ops::taps_of(w)), spec_.vector.elem_cycles));
        const double in_all = cycles_of_steps(cycles(most_read(rows), in.w, false), work, cycles(rows, out.w, true),
                                              static_cast<double>(steps), each == 2);
        if (in_all < least) {
          least = in_all;
          tile = rows, channels = c, buffers = each;
        }
      }
      if (rows == 1) break;
    }
    if (c == 1) break;
  }
  if (tile == 0) does_not_fit(node, input_bytes(1, 1) + output_bytes(1, 1));
  const int64_t row_steps = (out.h + tile - 1) / tile, parts = (in.c + channels - 1) / channels;
  const Place x = place_of(*node.input(0)), y = place_of(*node.output());
  struct Piece {
    int64_t n, row, count, channel, channels, in_at, out_at;
    Span rows;
  };
  const auto piece_of = [&](int64_t step) {
    const int64_t row = step / parts % row_steps * tile, channel = step % parts * channels;
    const int64_t count = std::min(tile, out.h - row);
    const int64_t in_at = step % buffers * input_bytes(tile, channels);
    return Piece{step / parts / row_steps,
                 row,
                 count,
                 channel,
                 std::min(channels, in.c - channel),
                 in_at,
                 buffers * input_bytes(tile, channels) + step % buffers * output_bytes(tile, channels),
                 positions_read(w[0], row, count, in.h)};
  };
  run({.count = out.n * row_steps * parts,
       .overlap = buffers == 2,
       .load =
           [&](int64_t step) {
             const Piece p = piece_of(step);
             const int64_t at = (p.n * in.h + p.rows.begin) * in.w * in.c + p.channel;
             load({x.region, x.offset_bytes + at * elem_}, p.in_at, box_of(p.rows.count, in.w, p.channels, in.w, in.c));
           },
       .compute =
           [&](int64_t step) {
             const Piece p = piece_of(step);
             add(hetnn::npu::Pool{.dtype = static_cast<int64_t>(dtype_),
                                  .op = !largest,
                                  .count_pad = !largest && !global && node.flag("count_include_pad"),
                                  .channels = p.channels,
                                  .in_addr = p.in_at,
                                  .in_h = p.rows.count,
                                  .in_w = in.w,
                                  .in_row_pitch = in.w * p.channels * elem_,
                                  .in_pixel_pitch = p.channels * elem_,
                                  .out_addr = p.out_at,
                                  .out_h = p.count,
                                  .out_w = out.w,
                                  .out_row_pitch = out.w * p.channels * elem_,
                                  .out_pixel_pitch = p.channels * elem_,
                                  .kernel_h = w[0].kernel,
                                  .kernel_w = w[1].kernel,
                                  .stride_h = w[0].stride,
                                  .stride_w = w[1].stride,
                                  .dilation_h = w[0].dilation,
                                  .dilation_w = w[1].dilation,
                                  .pad_top = p.rows.pad,
                                  .pad_left = w[1].before,
                                  .pad_bottom = p.rows.begin + p.rows.count == in.h ? w[0].after : 0,
                                  .pad_right = w[1].after,
                                  .divisor = !largest && !global ? node.integer("divisor_override").value() : 0,
                                  .zero = zero_of(*node.input(0))});
           },
       .store =
           [&](int64_t step) {
             const Piece p = piece_of(step);
             const int64_t at = (p.n * out.h + p.row) * out.w * out.c + p.channel;
             store(p.out_at, {y.region, y.offset_bytes + at * elem_}, box_of(p.count, out.w, p.channels, out.w, out.c));
           }});
}

// One product a batch entry; rows of a in tiles, against columns of b.
void Generator::matmul(const ir::Node& node, const Epilogue& epilogue) {
  const std::vector<int64_t> a = evaluate(node.input(0)->shape(), bindings_),
                             b = evaluate(node.input(1)->shape(), bindings_);
  if (a.size() != b.size() || a.size() == 4 || !std::equal(a.begin(), a.end() - 2, b.begin())) {
    throw Unsupported(text(ir::describe(node), ": the NPU multiplies matrices of equal batches and rank up to 3; got ",
                           to_string(node.input(0)->shape()), " and ", to_string(node.input(1)->shape()), "."));
  }
  // b takes the place of weights, so its columns are filters; a is rows of one pixel. Sums are not split.
  const bool quantized = dtype_ == DType::i8;
  const ProductShape s{.dtype = dtype_,
                       .batch = a.size() == 3 ? a[0] : 1,
                       .in_h = a[a.size() - 2],
                       .out_h = a[a.size() - 2],
                       .in_c = a.back(),
                       .out_c = b.back(),
                       .adds = epilogue.addend != nullptr,
                       .whole_sums = true,
                       .weights_differ = true};
  int64_t needed_bytes = 0;
  const std::optional<Tile> best = best_tile(spec_, s, needed_bytes);
  if (!best) does_not_fit(node, needed_bytes);
  const Tile& t = *best;
  const TileBuffers buffers = buffers_of(s, t);
  const std::vector<Step> steps = steps_of(s, t, buffers);
  const Place pa = place_of(*node.input(0)), pb = place_of(*node.input(1)), po = place_of(*node.output());
  const Place addend = epilogue.addend ? place_of(*epilogue.addend) : Place();
  const Place factors = quantized ? product_factors(node, s.out_c) : Place();
  const auto output_place = [&](const Place& of, const Step& p) {
    return Place{of.region, of.offset_bytes + ((p.n * s.out_h + p.row) * s.out_c + p.filter) * elem_};
  };
  const auto box = [&](int64_t rows, int64_t columns) { return box_of(rows, 1, columns, 1, s.out_c); };
  run({.count = static_cast<int64_t>(steps.size()),
       .overlap = t.overlaps,
       .load =
           [&](int64_t k) {
             const Step& p = steps[static_cast<size_t>(k)];
             if (p.loads_weights) {
               load({pb.region, pb.offset_bytes + (p.n * s.in_c * s.out_c + p.filter) * elem_}, p.weights_at,
                    box(s.in_c, p.filters));
               if (quantized)
                 load({factors.region, factors.offset_bytes + p.filter * kFactorBytes}, p.weights_at + buffers.factors,
                      p.filters * kFactorBytes);
             }
             if (p.loads_input)
               load({pa.region, pa.offset_bytes + (p.n * s.out_h + p.row) * s.in_c * elem_}, p.input_at,
                    p.rows * s.in_c * elem_);
             if (epilogue.addend) load(output_place(addend, p), p.output_at, box(p.rows, p.filters));
           },
       .compute =
           [&](int64_t k) {
             const Step& p = steps[static_cast<size_t>(k)];
             add(hetnn::npu::Matmul{.dtype = static_cast<int64_t>(dtype_),
                                    .act = static_cast<int64_t>(epilogue.act),
                                    .a_zero = zero_of(*node.input(0)),
                                    .b_zero = zero_of(*node.input(1)),
                                    .out_zero = zero_of(*node.output()),
                                    .m = p.rows,
                                    .k = s.in_c,
                                    .n = p.filters,
                                    .a_addr = p.input_at,
                                    .a_pitch = s.in_c * elem_,
                                    .b_addr = p.weights_at,
                                    .b_pitch = p.filters * elem_,
                                    .out_addr = p.output_at,
                                    .out_pitch = p.filters * elem_,
                                    .quant_addr = p.weights_at + buffers.factors,
                                    .clamp_lo = epilogue.clamp_lo,
                                    .clamp_hi = epilogue.clamp_hi,
                                    .add_output = epilogue.addend != nullptr});
           },
       .store =
           [&](int64_t k) {
             const Step& p = steps[static_cast<size_t>(k)];
             store(p.output_at, output_place(po, p), box(p.rows, p.filters));
           }});
}

}  // namespace hetnn::backends::npu
