// One function a form.
#include "hetnn/backends/npu/emit.h"

#include <algorithm>

#include "hetnn/backends/npu/factors.h"

namespace hetnn::backends::scheduling {

using npu::Instruction;

namespace {

// Floats have no factors.
int64_t rounding_field(const Layer& l, const npu::Spec& spec) {
  return l.dtype == DType::i8 ? static_cast<int64_t>(l.rounding(spec)) : 0;
}

// Rows of one pixel may be laid out as the picture that the engine computes fastest.
Instruction convolution(const npu::Spec& spec, const Layer& l, const Piece& p, const Operands& o) {
  const ProductShape& s = l.product;
  const int64_t groups = s.groups == 1 ? 1 : p.filters / (s.out_c / s.groups);
  Picture read{p.in_rows.count, p.in_columns.count}, made{p.rows, p.columns};
  View in = o.in, out = o.out, addend = o.addend;
  if (s.is_rows) {
    read = made = picture_of(spec, s, p.rows, p.filters, p.channels);
    for (View* view : {&in, &out, &addend}) {
      view->pixel_pitch = view->row_pitch;
      view->row_pitch = made.columns * view->pixel_pitch;
    }
  }
  const bool adds = l.addend() && p.last_part;
  return npu::Conv2d{.dtype = static_cast<int64_t>(l.dtype),
                     .act = p.last_part ? static_cast<int64_t>(l.epilogue.act) : 0,
                     .has_bias = s.biased && p.last_part,
                     .has_addend = adds,
                     .load_acc = !p.first_part,
                     .store_acc = !p.last_part,
                     .in_zero = zero_of(*l.inputs[0]),
                     .out_zero = zero_of(*l.output),
                     .sum_zero = adds ? zero_of(*l.node().output()) : 0,
                     .add_zero = adds ? zero_of(*l.addend()) : 0,
                     .rounding = rounding_field(l, spec),
                     .groups = groups,
                     .in_addr = in.addr,
                     .in_h = read.rows,
                     .in_w = read.columns,
                     .in_c = p.channels / groups,
                     .in_row_pitch = in.row_pitch,
                     .in_pixel_pitch = in.pixel_pitch,
                     .in_wrap_row = in.wrap_row,
                     .in_wrap_addr = in.wrap_addr,
                     .out_addr = out.addr,
                     .out_h = made.rows,
                     .out_w = made.columns,
                     .out_c = p.filters / groups,
                     .out_row_pitch = out.row_pitch,
                     .out_pixel_pitch = out.pixel_pitch,
                     .out_wrap_row = out.wrap_row,
                     .out_wrap_addr = out.wrap_addr,
                     .add_addr = adds ? addend.addr : 0,
                     .add_row_pitch = adds ? addend.row_pitch : 0,
                     .add_pixel_pitch = adds ? addend.pixel_pitch : 0,
                     .add_wrap_row = adds ? addend.wrap_row : 0,
                     .add_wrap_addr = adds ? addend.wrap_addr : 0,
                     .add_quant_addr = adds ? o.addend_factors : 0,
                     .weight_addr = o.parameters,
                     .bias_addr = o.second,
                     .quant_addr = o.third,
                     .acc_addr = o.sums,
                     .kernel_h = s.window[0].kernel,
                     .kernel_w = s.window[1].kernel,
                     .stride_h = s.window[0].stride,
                     .stride_w = s.window[1].stride,
                     .dilation_h = s.window[0].dilation,
                     .dilation_w = s.window[1].dilation,
                     .pad_top = p.in_rows.pad,
                     .pad_left = p.in_columns.pad,
                     .clamp_lo = l.epilogue.clamp_lo,
                     .clamp_hi = l.epilogue.clamp_hi};
}

Instruction matrices(const npu::Spec& spec, const Layer& l, const Piece& p, const Operands& o) {
  return npu::Matmul{.dtype = static_cast<int64_t>(l.dtype),
                     .act = static_cast<int64_t>(l.epilogue.act),
                     .a_zero = zero_of(*l.inputs[0]),
                     .b_zero = zero_of(*l.inputs[1]),
                     .out_zero = zero_of(*l.node().output()),
                     .m = p.rows,
                     .k = l.product.in_c,
                     .n = p.filters,
                     .rounding = rounding_field(l, spec),
                     .a_addr = o.in.addr,
                     .a_pitch = o.in.row_pitch,
                     .b_addr = o.parameters,
                     .b_pitch = o.parameter_pitch > 0 ? o.parameter_pitch : p.filters * l.elem,
                     .out_addr = o.out.addr,
                     .out_pitch = o.out.row_pitch,
                     .quant_addr = o.third,
                     .clamp_lo = l.epilogue.clamp_lo,
                     .clamp_hi = l.epilogue.clamp_hi,
                     .has_addend = l.addend() != nullptr,
                     .add_addr = l.addend() ? o.addend.addr : 0,
                     .add_pitch = l.addend() ? o.addend.row_pitch : 0};
}

Instruction pool(const npu::Spec& spec, const Layer& l, const Piece& p, const Operands& o) {
  const ir::Node& node = l.node();
  const bool largest = node.op().primitive == ops::Primitive::largest_pool,
             global = node.attrs().contains("output_size");
  const ops::Window& w = l.window;
  return npu::Pool{.dtype = static_cast<int64_t>(l.dtype),
                   .op = !largest,
                   .count_pad = !largest && !global && node.flag("count_include_pad"),
                   .channels = p.channels,
                   .in_addr = o.in.addr,
                   .in_h = p.in_rows.count,
                   .in_w = p.in_columns.count,
                   .in_row_pitch = o.in.row_pitch,
                   .in_pixel_pitch = o.in.pixel_pitch,
                   .in_wrap_row = o.in.wrap_row,
                   .in_wrap_addr = o.in.wrap_addr,
                   .out_addr = o.out.addr,
                   .out_h = p.rows,
                   .out_w = l.out.w,
                   .out_row_pitch = o.out.row_pitch,
                   .out_pixel_pitch = o.out.pixel_pitch,
                   .out_wrap_row = o.out.wrap_row,
                   .out_wrap_addr = o.out.wrap_addr,
                   .kernel_h = w[0].kernel,
                   .kernel_w = w[1].kernel,
                   .stride_h = w[0].stride,
                   .stride_w = w[1].stride,
                   .dilation_h = w[0].dilation,
                   .dilation_w = w[1].dilation,
                   .pad_top = p.in_rows.pad,
                   .pad_left = p.in_columns.pad,
                   .pad_bottom = p.in_rows.begin + p.in_rows.count == l.in.h ? w[0].after : 0,
                   .pad_right = p.in_columns.begin + p.in_columns.count == l.in.w ? w[1].after : 0,
                   .divisor = !largest && !global ? node.integer("divisor_override").value() : 0,
                   .zero = zero_of(*l.inputs[0]),
                   .rounding = largest ? 0 : rounding_field(l, spec)};
}

Instruction rows(const Layer& l, int64_t pixels, int64_t channels, const Operands& o, int64_t in, int64_t out) {
  if (l.node().op().primitive == ops::Primitive::softmax)
    return npu::Softmax{.dtype = static_cast<int64_t>(l.dtype),
                        .out_zero = zero_of(*l.output),
                        .rows = pixels,
                        .channels = channels,
                        .in_addr = in,
                        .in_pitch = o.in.pixel_pitch,
                        .out_addr = out,
                        .out_pitch = o.out.pixel_pitch,
                        .table_addr = o.parameters};
  return npu::Normalize{.dtype = static_cast<int64_t>(l.dtype),
                        .out_zero = zero_of(*l.output),
                        .shift = normal_factors_of(l)->shift,
                        .rows = pixels,
                        .channels = channels,
                        .in_addr = in,
                        .in_pitch = o.in.pixel_pitch,
                        .out_addr = out,
                        .out_pitch = o.out.pixel_pitch,
                        .factors_addr = o.parameters};
}

// Pixels one after another; where one of the maps wraps, so many rows at a time.
std::vector<Instruction> elementwise(const npu::Spec& spec, const Layer& l, const Piece& p, const Operands& o) {
  std::vector<int64_t> cuts = {0, p.rows};
  for (const View* view : {&o.in, &o.out, &o.addend}) {
    if (view->wrap_row > 0 && view->wrap_row < p.rows) cuts.push_back(view->wrap_row);
  }
  std::sort(cuts.begin(), cuts.end());
  const auto address = [](const View& view, int64_t row) {
    return view.wrap_row > 0 && row >= view.wrap_row ? view.wrap_addr + (row - view.wrap_row) * view.row_pitch
                                                     : view.addr + row * view.row_pitch;
  };
  std::vector<Instruction> out;
  for (size_t k = 0; k + 1 < cuts.size(); ++k) {
    const int64_t row = cuts[k], pixels = (cuts[k + 1] - row) * p.columns;
    if (pixels == 0) continue;
    if (l.form == Form::rows) {
      out.push_back(rows(l, pixels, p.filters, o, address(o.in, row), address(o.out, row)));
      continue;
    }
    if (l.form == Form::unary) {
      out.push_back(npu::Activation{.dtype = static_cast<int64_t>(l.dtype),
                                    .act = static_cast<int64_t>(l.epilogue.act),
                                    .zero = zero_of(*l.node().output()),
                                    .rows = pixels,
                                    .channels = p.filters,
                                    .in_addr = address(o.in, row),
                                    .in_pitch = o.in.pixel_pitch,
                                    .out_addr = address(o.out, row),
                                    .out_pitch = o.out.pixel_pitch,
                                    .table_addr = o.parameters,
                                    .clamp_lo = l.epilogue.clamp_lo,
                                    .clamp_hi = l.epilogue.clamp_hi});
      continue;
    }
    const bool one_row = l.row != nullptr;
    const ir::Value& b = one_row ? *l.row : *l.inputs[1];
    out.push_back(npu::Elementwise{.dtype = static_cast<int64_t>(l.dtype),
                                   .op = static_cast<int64_t>(*l.op),
                                   .b_kind = one_row,
                                   .act = static_cast<int64_t>(l.epilogue.act),
                                   .a_zero = zero_of(*l.inputs[0]),
                                   .b_zero = zero_of(b),
                                   .out_zero = zero_of(*l.node().output()),
                                   .rounding = rounding_field(l, spec),
                                   .rows = pixels,
                                   .channels = p.filters,
                                   .a_addr = address(o.in, row),
                                   .a_pitch = o.in.pixel_pitch,
                                   .b_addr = one_row ? o.addend.addr : address(o.addend, row),
                                   .b_pitch = one_row ? 0 : o.addend.pixel_pitch,
                                   .out_addr = address(o.out, row),
                                   .out_pitch = o.out.pixel_pitch,
                                   .scale_a = npu::float_bits(1),
                                   .scale_b = npu::float_bits(1),
                                   .quant_addr = o.second,
                                   .clamp_lo = l.epilogue.clamp_lo,
                                   .clamp_hi = l.epilogue.clamp_hi});
  }
  return out;
}

}  // namespace

std::vector<Instruction> instructions_of(const npu::Spec& spec, const Layer& layer, const Piece& piece,
                                         const Operands& operands) {
  switch (layer.form) {
    case Form::product:
      return {convolution(spec, layer, piece, operands)};
    case Form::matrices:
      return {matrices(spec, layer, piece, operands)};
    case Form::pool:
      return {pool(spec, layer, piece, operands)};
    default:
      return elementwise(spec, layer, piece, operands);
  }
}

}  // namespace hetnn::backends::scheduling
