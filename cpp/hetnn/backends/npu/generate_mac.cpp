// Layers of the product engine, and pooling, tiled by output rows.
#include <algorithm>
#include <cstring>

#include "hetnn/backends/npu/generate.h"
#include "hetnn/base/error.h"
#include "hetnn/ops/infer.h"

namespace hetnn::backends::npu {

using hetnn::npu::Engine;
using hetnn::npu::Region;

namespace {

constexpr int64_t kElem = 4;

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

}  // namespace

// Filters in blocks of `block`, each block as [kernel row][kernel column][channel][filter]; offset in the image.
int64_t Generator::pack_filters(const ir::Node& node, const Tensor& weight, int64_t block, int64_t groups) {
  const std::vector<int64_t>& s = weight.shape();
  const int64_t filters = s[0], channels = s[1], taps = s.size() == 4 ? s[2] * s[3] : 1;
  std::byte* data = nullptr;
  if (!constants_) return constant(Tensor::zeros(DType::f32, {weight.elems()})).offset_bytes;
  static_cast<void>(node);
  static_cast<void>(groups);
  const Tensor packed = Tensor::zeros(DType::f32, {weight.elems()}, &data);
  const auto from = weight.values<float>();
  auto* to = reinterpret_cast<float*>(data);
  for (int64_t first = 0; first < filters; first += block) {
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t f = first; f < std::min(first + block, filters); ++f)
          *to++ = from[static_cast<size_t>((f * channels + c) * taps + t)];
      }
    }
  }
  return constant(packed).offset_bytes;
}

// A linear layer is a 1x1 convolution over rows of one pixel.
void Generator::conv(const ir::Node& node, bool relu) {
  const Tensor* weight = node.constant_input(1);
  if (!weight)
    throw Unsupported(
        text(ir::describe(node), ": its weight is computed at run time; the NPU packs weights when compiling."));
  const Map in = map_of(*node.input(0)), out = map_of(*node.output());
  const bool windowed = weight->rank() == 4;
  Window w;
  int64_t groups = 1;
  if (windowed) {
    w = {{weight->shape()[2], weight->shape()[3]},
         ops::per_axis(node, "stride", 2),
         ops::per_axis(node, "dilation", 2),
         ops::padding_of(node)};
    groups = node.integer("groups").value();
  }
  const int64_t taps = w.kernel[0] * w.kernel[1], in_c = weight->shape()[1];
  const int64_t in_row = in.w * in.c * kElem;
  // As many filters at once as leave half of the scratchpad to feature maps; groups are not divided.
  int64_t block = out.c;
  auto filter_bytes = [&] { return (taps * in_c * block + block) * kElem; };
  while (groups == 1 && block > 1 && filter_bytes() > spec_.scratchpad().bytes / 2) block = (block + 1) / 2;
  auto tile_bytes = [&](int64_t rows) { return most_rows_read(w, rows, in.h) * in_row + rows * out.w * block * kElem; };
  int64_t tile = out.h;
  while (tile > 1 && filter_bytes() + tile_bytes(tile) > spec_.scratchpad().bytes) tile = (tile + 1) / 2;
  if (filter_bytes() + tile_bytes(tile) > spec_.scratchpad().bytes)
    does_not_fit(node, filter_bytes() + tile_bytes(tile));

  const int64_t filters_at = pack_filters(node, *weight, block, groups);
  const Place x = place_of(*node.input(0)), y = place_of(*node.output());
  const bool biased = node.input(2) != nullptr;
  const int64_t bias_at = biased ? place_of(*node.input(2)).offset_bytes : 0;
  for (int64_t first = 0; first < out.c; first += block) {
    const int64_t filters = std::min(block, out.c - first);
    const int64_t weight_bytes = taps * in_c * filters * kElem;
    const int64_t at_bias = weight_bytes, at_in = at_bias + filters * kElem;
    load({Region::weights, filters_at + first * taps * in_c * kElem}, 0, weight_bytes);
    if (biased) load({Region::weights, bias_at + first * kElem}, at_bias, filters * kElem);
    for (int64_t n = 0; n < out.n; ++n) {
      for (int64_t row = 0; row < out.h; row += tile) {
        const int64_t count = std::min(tile, out.h - row);
        const Rows rows = rows_read(w, row, count, in.h);
        const int64_t at_out = at_in + rows.count * in_row;
        load({x.region, x.offset_bytes + (n * in.h + rows.begin) * in_row}, at_in, rows.count * in_row);
        then(Engine::dma, Engine::mac);
        code_.push_back(hetnn::npu::Conv2d{.dtype = 0,
                                           .act = relu,
                                           .has_bias = biased,
                                           .groups = groups,
                                           .in_addr = at_in,
                                           .in_h = rows.count,
                                           .in_w = in.w,
                                           .in_c = in_c,
                                           .in_row_pitch = in_row,
                                           .in_pixel_pitch = in.c * kElem,
                                           .out_addr = at_out,
                                           .out_h = count,
                                           .out_w = out.w,
                                           .out_c = filters / groups,
                                           .out_row_pitch = out.w * filters * kElem,
                                           .out_pixel_pitch = filters * kElem,
                                           .weight_addr = 0,
                                           .bias_addr = at_bias,
                                           .kernel_h = w.kernel[0],
                                           .kernel_w = w.kernel[1],
                                           .stride_h = w.stride[0],
                                           .stride_w = w.stride[1],
                                           .dilation_h = w.dilation[0],
                                           .dilation_w = w.dilation[1],
                                           .pad_top = rows.pad_top,
                                           .pad_left = w.pad[1]});
        then(Engine::mac, Engine::dma);
        store_runs(at_out, {y.region, y.offset_bytes + ((n * out.h + row) * out.w * out.c + first) * kElem},
                   out.c * kElem, filters * kElem, count * out.w);
      }
    }
  }
}

void Generator::pool(const ir::Node& node) {
  const Map in = map_of(*node.input(0)), out = map_of(*node.output());
  Window w;
  const bool global = node.attrs().contains("output_size");
  if (global) {
    if (out.h != 1 || out.w != 1)
      throw Unsupported(
          text(ir::describe(node), ": the NPU pools adaptively to 1x1 only; got ", out.h, "x", out.w, "."));
    w.kernel = w.stride = {in.h, in.w};
  } else {
    w = {ops::per_axis(node, "kernel", 2), ops::stride_of(node), {1, 1}, ops::padding_of(node)};
    if (node.attrs().contains("dilation")) w.dilation = ops::per_axis(node, "dilation", 2);
  }
  const bool largest = node.attrs().contains("dilation");
  const int64_t in_row = in.w * in.c * kElem, out_row = out.w * out.c * kElem;
  auto tile_bytes = [&](int64_t rows) { return most_rows_read(w, rows, in.h) * in_row + rows * out_row; };
  int64_t tile = out.h;
  while (tile > 1 && tile_bytes(tile) > spec_.scratchpad().bytes) tile = (tile + 1) / 2;
  if (tile_bytes(tile) > spec_.scratchpad().bytes) does_not_fit(node, tile_bytes(tile));
  const Place x = place_of(*node.input(0)), y = place_of(*node.output());
  for (int64_t n = 0; n < out.n; ++n) {
    for (int64_t row = 0; row < out.h; row += tile) {
      const int64_t count = std::min(tile, out.h - row);
      const Rows rows = rows_read(w, row, count, in.h);
      const int64_t at_out = rows.count * in_row;
      load({x.region, x.offset_bytes + (n * in.h + rows.begin) * in_row}, 0, rows.count * in_row);
      then(Engine::dma, Engine::vector);
      code_.push_back(hetnn::npu::Pool{.dtype = 0,
                                       .op = !largest,
                                       .count_pad = !largest && !global && node.flag("count_include_pad"),
                                       .channels = in.c,
                                       .in_addr = 0,
                                       .in_h = rows.count,
                                       .in_w = in.w,
                                       .in_row_pitch = in_row,
                                       .in_pixel_pitch = in.c * kElem,
                                       .out_addr = at_out,
                                       .out_h = count,
                                       .out_w = out.w,
                                       .out_row_pitch = out_row,
                                       .out_pixel_pitch = out.c * kElem,
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
                                       .divisor = !largest && !global ? node.integer("divisor_override").value() : 0});
      then(Engine::vector, Engine::dma);
      store_runs(at_out, {y.region, y.offset_bytes + (n * out.h + row) * out_row}, 0, count * out_row, 1);
    }
  }
}

// One product a batch entry; rows of a in tiles, b whole.
void Generator::matmul(const ir::Node& node, bool relu) {
  const std::vector<int64_t> a = evaluate(node.input(0)->shape(), bindings_),
                             b = evaluate(node.input(1)->shape(), bindings_);
  if (a.size() != b.size() || a.size() == 4 || !std::equal(a.begin(), a.end() - 2, b.begin())) {
    throw Unsupported(text(ir::describe(node), ": the NPU multiplies matrices of equal batches and rank up to 3; got ",
                           to_string(node.input(0)->shape()), " and ", to_string(node.input(1)->shape()), "."));
  }
  const int64_t m = a[a.size() - 2], k = a.back(), n = b.back(), batches = a.size() == 3 ? a[0] : 1;
  const int64_t b_bytes = k * n * kElem;
  const int64_t tile = std::min(m, (spec_.scratchpad().bytes - b_bytes) / ((k + n) * kElem));
  if (tile < 1) does_not_fit(node, b_bytes + (k + n) * kElem);
  const Place pa = place_of(*node.input(0)), pb = place_of(*node.input(1)), po = place_of(*node.output());
  const int64_t at_a = b_bytes, at_out = at_a + tile * k * kElem;
  for (int64_t batch = 0; batch < batches; ++batch) {
    load({pb.region, pb.offset_bytes + batch * b_bytes}, 0, b_bytes);
    for (int64_t row = 0; row < m; row += tile) {
      const int64_t count = std::min(tile, m - row);
      load({pa.region, pa.offset_bytes + (batch * m + row) * k * kElem}, at_a, count * k * kElem);
      then(Engine::dma, Engine::mac);
      code_.push_back(hetnn::npu::Matmul{.dtype = 0,
                                         .act = relu,
                                         .m = count,
                                         .k = k,
                                         .n = n,
                                         .a_addr = at_a,
                                         .a_pitch = k * kElem,
                                         .b_addr = 0,
                                         .b_pitch = n * kElem,
                                         .out_addr = at_out,
                                         .out_pitch = n * kElem});
      then(Engine::mac, Engine::dma);
      store_runs(at_out, {po.region, po.offset_bytes + (batch * m + row) * n * kElem}, 0, count * n * kElem, 1);
    }
  }
}

}  // namespace hetnn::backends::npu
