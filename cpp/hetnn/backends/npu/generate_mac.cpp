// Layers of the product engine, and pooling, tiled by output rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "hetnn/backends/npu/generate.h"
#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/quantized.h"

namespace hetnn::backends::npu {

using hetnn::npu::Engine;
using hetnn::npu::Region;

namespace {

constexpr int64_t kSumBytes = 4;  // of an accumulator and of a bias

// The window of one layer along rows and columns.
struct Window {
  std::vector<int64_t> kernel = {1, 1}, stride = {1, 1}, dilation = {1, 1}, pad = {0, 0, 0, 0};
};

// Input rows that output rows [first, first + count) read: present ones, and rows of padding above.
struct Rows {
  int64_t begin, count, pad_top;
};
Rows rows_read(const Window& w, int64_t first, int64_t count, int64_t in_h) {
  const int64_t top = first * w.stride[0] - w.pad[0];
  const int64_t bottom = (first + count - 1) * w.stride[0] - w.pad[0] + (w.kernel[0] - 1) * w.dilation[0] + 1;
  const int64_t begin = std::clamp<int64_t>(top, 0, in_h), end = std::clamp<int64_t>(bottom, begin, in_h);
  return {begin, end - begin, begin - top};
}

int64_t most_rows_read(const Window& w, int64_t count, int64_t in_h) {
  return std::min(in_h, (count - 1) * w.stride[0] + (w.kernel[0] - 1) * w.dilation[0] + 1);
}

// Where a block of filters has its biases and factors, and where they end.
struct FilterRegions {
  int64_t bias, factors, input;
};

FilterRegions filter_regions(int64_t filter_bytes, int64_t filters, bool biased, bool quantized) {
  const int64_t bias = aligned(filter_bytes * filters);
  const int64_t at_factors = aligned(bias + (biased ? filters * kSumBytes : 0));
  return {bias, at_factors, aligned(at_factors + (quantized ? filters * kFactorBytes : 0))};
}

}  // namespace

// Filters in blocks of `block`, each block as [kernel row][kernel column][channel][filter]; where it begins.
int64_t Generator::pack_filters(const Tensor& weight, int64_t block) {
  std::byte* data = nullptr;
  const Tensor packed = Tensor::zeros(weight.dtype(), {weight.elems()}, &data);
  const std::vector<int64_t>& s = weight.shape();
  const int64_t filters = s[0], channels = s[1], taps = s.size() == 4 ? s[2] * s[3] : 1;
  const auto size = static_cast<size_t>(dtype_bytes(weight.dtype()));
  for (int64_t first = 0; keep_ && first < filters; first += block) {
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t f = first; f < std::min(first + block, filters); ++f) {
          std::memcpy(data, weight.data() + static_cast<size_t>((f * channels + c) * taps + t) * size, size);
          data += size;
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
  const std::vector<double>& scales = bias.type().quant->scales;
  const ops::Quant &x = *node.input(0)->type().quant, &w = *node.input(1)->type().quant;
  const auto in = tensor->values<int32_t>();
  std::vector<int32_t> out(in.size());
  for (size_t k = 0; k < in.size(); ++k) {
    const double wanted = x.scales[0] * w.scales[w.scales.size() == 1 ? 0 : k];
    const double steps = std::nearbyint(in[k] * (scales[scales.size() == 1 ? 0 : k] / wanted));
    out[k] = static_cast<int32_t>(std::clamp(steps, -0x1p31, 0x1p31 - 1));
  }
  return constant(Tensor::of<int32_t>(tensor->shape(), out));
}

Place Generator::product_factors(const ir::Node& node, int64_t count) {
  const ops::Quant &x = *node.input(0)->type().quant, &w = *node.input(1)->type().quant,
                   &y = *node.output()->type().quant;
  std::vector<double> reals(static_cast<size_t>(count));
  for (size_t k = 0; k < reals.size(); ++k)
    reals[k] = x.scales[0] * w.scales[w.scales.size() == 1 ? 0 : k] / y.scales[0];
  return factors(node, reals);
}

// A linear layer is a 1x1 convolution over rows of one pixel. A third of the length is the fields of one instruction.
void Generator::conv(const ir::Node& node, const Epilogue& epilogue) {
  const Tensor* weight = node.constant_input(1);
  if (!weight)
    throw Unsupported(
        text(ir::describe(node), ": its weight is computed at run time; the NPU packs weights when compiling."));
  const Map in = map_of(*node.input(0)), out = map_of(*node.output());
  const bool windowed = weight->rank() == 4;
  if (!windowed && node.output()->rank() == 4) {
    throw Unsupported(text(ir::describe(node), ": the NPU's linear layers run over the last axis of up to 3; got ",
                           to_string(node.input(0)->shape()), "."));
  }
  const Window w = windowed ? Window{{weight->shape()[2], weight->shape()[3]},
                                     ops::per_axis(node.call(), "stride", 2),
                                     ops::per_axis(node.call(), "dilation", 2),
                                     ops::padding_of(node.call())}
                            : Window();
  const int64_t groups = windowed ? node.integer("groups").value() : 1;
  const int64_t taps = w.kernel[0] * w.kernel[1], in_c = weight->shape()[1];
  const int64_t in_row = in.w * in.c * elem_;
  const bool quantized = dtype_ == DType::i8, biased = node.input(2) != nullptr;
  // The scratchpad holds the filters of a block, their biases, their factors, a tile of the input and one of the
  // output.
  const auto regions_of = [&](int64_t filters) {
    return filter_regions(taps * in_c * elem_, filters, biased, quantized);
  };
  // As many filters at once as leave half of the scratchpad to feature maps; groups are not divided.
  const int64_t scratchpad_bytes = spec_.scratchpad().bytes;
  int64_t block = out.c;
  while (groups == 1 && block > 1 && regions_of(block).input > scratchpad_bytes / 2) block = (block + 1) / 2;
  const auto tile_bytes = [&](int64_t rows) {
    return regions_of(block).input + aligned(most_rows_read(w, rows, in.h) * in_row) + rows * out.w * block * elem_;
  };
  int64_t tile = out.h;
  while (tile > 1 && tile_bytes(tile) > scratchpad_bytes) tile = (tile + 1) / 2;
  if (tile_bytes(tile) > scratchpad_bytes) does_not_fit(node, tile_bytes(tile));

  const int64_t filters_at = pack_filters(*weight, block);
  const Place x = place_of(*node.input(0)), y = place_of(*node.output());
  const Place addend = epilogue.addend ? place_of(*epilogue.addend) : Place();
  const int64_t bias_at = biased ? bias_of(node).offset_bytes : 0;
  const int64_t factors_at = quantized ? product_factors(node, out.c).offset_bytes : 0;
  for (int64_t first = 0; first < out.c; first += block) {
    const int64_t filters = std::min(block, out.c - first);
    const FilterRegions at = regions_of(filters);
    load({Region::weights, filters_at + first * taps * in_c * elem_}, 0, taps * in_c * filters * elem_);
    if (biased) load({Region::weights, bias_at + first * kSumBytes}, at.bias, filters * kSumBytes);
    if (quantized) load({Region::weights, factors_at + first * kFactorBytes}, at.factors, filters * kFactorBytes);
    for (int64_t n = 0; n < out.n; ++n) {
      for (int64_t row = 0; row < out.h; row += tile) {
        const int64_t count = std::min(tile, out.h - row);
        const Rows rows = rows_read(w, row, count, in.h);
        const int64_t at_out = at.input + aligned(rows.count * in_row);
        const int64_t stored = ((n * out.h + row) * out.w * out.c + first) * elem_;
        load({x.region, x.offset_bytes + (n * in.h + rows.begin) * in_row}, at.input, rows.count * in_row);
        if (epilogue.addend)
          load_runs({addend.region, addend.offset_bytes + stored}, out.c * elem_, at_out, filters * elem_,
                    count * out.w);
        then(Engine::dma, Engine::mac);
        add(hetnn::npu::Conv2d{.dtype = static_cast<int64_t>(dtype_),
                               .act = static_cast<int64_t>(epilogue.act),
                               .has_bias = biased,
                               .add_output = epilogue.addend != nullptr,
                               .in_zero = zero_of(*node.input(0)),
                               .out_zero = zero_of(*node.output()),
                               .groups = groups,
                               .in_addr = at.input,
                               .in_h = rows.count,
                               .in_w = in.w,
                               .in_c = in_c,
                               .in_row_pitch = in_row,
                               .in_pixel_pitch = in.c * elem_,
                               .out_addr = at_out,
                               .out_h = count,
                               .out_w = out.w,
                               .out_c = filters / groups,
                               .out_row_pitch = out.w * filters * elem_,
                               .out_pixel_pitch = filters * elem_,
                               .weight_addr = 0,
                               .bias_addr = at.bias,
                               .quant_addr = at.factors,
                               .kernel_h = w.kernel[0],
                               .kernel_w = w.kernel[1],
                               .stride_h = w.stride[0],
                               .stride_w = w.stride[1],
                               .dilation_h = w.dilation[0],
                               .dilation_w = w.dilation[1],
                               .pad_top = rows.pad_top,
                               .pad_left = w.pad[1],
                               .clamp_lo = epilogue.clamp_lo,
                               .clamp_hi = epilogue.clamp_hi});
        then(Engine::mac, Engine::dma);
        store_runs(at_out, {y.region, y.offset_bytes + stored}, out.c * elem_, filters * elem_, count * out.w);
      }
    }
  }
}

void Generator::pool(const ir::Node& node) {
  keeps_scale(node);
  const Map in = map_of(*node.input(0)), out = map_of(*node.output());
  Window w;
  const bool global = node.attrs().contains("output_size");
  if (global) {
    if (out.h != 1 || out.w != 1)
      throw Unsupported(
          text(ir::describe(node), ": the NPU pools adaptively to 1x1 only; got ", out.h, "x", out.w, "."));
    w.kernel = w.stride = {in.h, in.w};
  } else {
    w = {ops::per_axis(node.call(), "kernel", 2), ops::stride_of(node.call()), {1, 1}, ops::padding_of(node.call())};
    if (node.attrs().contains("dilation")) w.dilation = ops::per_axis(node.call(), "dilation", 2);
  }
  const bool largest = node.attrs().contains("dilation");
  const int64_t in_row = in.w * in.c * elem_, out_row = out.w * out.c * elem_;
  auto tile_bytes = [&](int64_t rows) { return aligned(most_rows_read(w, rows, in.h) * in_row) + rows * out_row; };
  int64_t tile = out.h;
  while (tile > 1 && tile_bytes(tile) > spec_.scratchpad().bytes) tile = (tile + 1) / 2;
  if (tile_bytes(tile) > spec_.scratchpad().bytes) does_not_fit(node, tile_bytes(tile));
  const Place x = place_of(*node.input(0)), y = place_of(*node.output());
  for (int64_t n = 0; n < out.n; ++n) {
    for (int64_t row = 0; row < out.h; row += tile) {
      const int64_t count = std::min(tile, out.h - row);
      const Rows rows = rows_read(w, row, count, in.h);
      const int64_t at_out = aligned(rows.count * in_row);
      load({x.region, x.offset_bytes + (n * in.h + rows.begin) * in_row}, 0, rows.count * in_row);
      then(Engine::dma, Engine::vector);
      add(hetnn::npu::Pool{.dtype = static_cast<int64_t>(dtype_),
                           .op = !largest,
                           .count_pad = !largest && !global && node.flag("count_include_pad"),
                           .channels = in.c,
                           .in_addr = 0,
                           .in_h = rows.count,
                           .in_w = in.w,
                           .in_row_pitch = in_row,
                           .in_pixel_pitch = in.c * elem_,
                           .out_addr = at_out,
                           .out_h = count,
                           .out_w = out.w,
                           .out_row_pitch = out_row,
                           .out_pixel_pitch = out.c * elem_,
                           .kernel_h = w.kernel[0],
                           .kernel_w = w.kernel[1],
                           .stride_h = w.stride[0],
                           .stride_w = w.stride[1],
                           .dilation_h = w.dilation[0],
                           .dilation_w = w.dilation[1],
                           .pad_top = rows.pad_top,
                           .pad_left = w.pad[1],
                           .pad_bottom = rows.begin + rows.count == in.h ? w.pad[2] : 0,
                           .pad_right = w.pad[3],
                           .divisor = !largest && !global ? node.integer("divisor_override").value() : 0,
                           .zero = zero_of(*node.input(0))});
      then(Engine::vector, Engine::dma);
      store_runs(at_out, {y.region, y.offset_bytes + (n * out.h + row) * out_row}, 0, count * out_row, 1);
    }
  }
}

// One product a batch entry; rows of a in tiles, b whole.
void Generator::matmul(const ir::Node& node, const Epilogue& epilogue) {
  const std::vector<int64_t> a = evaluate(node.input(0)->shape(), bindings_),
                             b = evaluate(node.input(1)->shape(), bindings_);
  if (a.size() != b.size() || a.size() == 4 || !std::equal(a.begin(), a.end() - 2, b.begin())) {
    throw Unsupported(text(ir::describe(node), ": the NPU multiplies matrices of equal batches and rank up to 3; got ",
                           to_string(node.input(0)->shape()), " and ", to_string(node.input(1)->shape()), "."));
  }
  const int64_t m = a[a.size() - 2], k = a.back(), n = b.back(), batches = a.size() == 3 ? a[0] : 1;
  const bool quantized = dtype_ == DType::i8;
  const int64_t b_bytes = k * n * elem_;
  const int64_t at_factors = aligned(b_bytes), at_a = aligned(at_factors + (quantized ? n * kFactorBytes : 0));
  const int64_t tile = std::min(m, (spec_.scratchpad().bytes - at_a - kAlignment) / ((k + n) * elem_));
  if (tile < 1) does_not_fit(node, at_a + kAlignment + (k + n) * elem_);
  const Place pa = place_of(*node.input(0)), pb = place_of(*node.input(1)), po = place_of(*node.output());
  const Place addend = epilogue.addend ? place_of(*epilogue.addend) : Place();
  const int64_t at_out = at_a + aligned(tile * k * elem_);
  if (quantized) load(product_factors(node, n), at_factors, n * kFactorBytes);
  for (int64_t batch = 0; batch < batches; ++batch) {
    load({pb.region, pb.offset_bytes + batch * b_bytes}, 0, b_bytes);
    for (int64_t row = 0; row < m; row += tile) {
      const int64_t count = std::min(tile, m - row);
      const int64_t stored = (batch * m + row) * n * elem_, stored_bytes = count * n * elem_;
      load({pa.region, pa.offset_bytes + (batch * m + row) * k * elem_}, at_a, count * k * elem_);
      if (epilogue.addend) load({addend.region, addend.offset_bytes + stored}, at_out, stored_bytes);
      then(Engine::dma, Engine::mac);
      add(hetnn::npu::Matmul{.dtype = static_cast<int64_t>(dtype_),
                             .act = static_cast<int64_t>(epilogue.act),
                             .a_zero = zero_of(*node.input(0)),
                             .b_zero = zero_of(*node.input(1)),
                             .out_zero = zero_of(*node.output()),
                             .m = count,
                             .k = k,
                             .n = n,
                             .a_addr = at_a,
                             .a_pitch = k * elem_,
                             .b_addr = 0,
                             .b_pitch = n * elem_,
                             .out_addr = at_out,
                             .out_pitch = n * elem_,
                             .quant_addr = at_factors,
                             .clamp_lo = epilogue.clamp_lo,
                             .clamp_hi = epilogue.clamp_hi,
                             .add_output = epilogue.addend != nullptr});
      then(Engine::mac, Engine::dma);
      store_runs(at_out, {po.region, po.offset_bytes + stored}, 0, stored_bytes, 1);
    }
  }
}

}  // namespace hetnn::backends::npu
