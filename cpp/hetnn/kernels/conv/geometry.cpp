// Reads and checks the geometry of sliding windows.
#include "hetnn/kernels/conv/geometry.h"

#include "hetnn/base/error.h"
#include "hetnn/kernels/row_view.h"

namespace hetnn::kernels {
namespace {

std::vector<int64_t> window_param(std::string_view op, const KernelCall& call, std::string_view name, int64_t fallback,
                                  int64_t least) {
  std::vector<int64_t> values = call.params.integers(name, {});
  if (values.empty()) values.assign(2, fallback);
  if (values.size() == 1) values.push_back(values[0]);
  const bool padding = name == "padding";
  if (values.size() != 2 && !(padding && values.size() == 4))
    throw InvalidModel(text(op, ": parameter ", name, " must have 2", padding ? " or 4" : "", " values; got ",
                            values.size(), ". Give one per spatial axis."));
  for (const int64_t value : values)
    if (value < least)
      throw InvalidModel(text(op, ": parameter ", name, " must be at least ", least, "; got ", value,
                              ". Check the layer's attributes."));
  return values;
}

void check_conv_operands(std::string_view op, const KernelCall& call, DType dtype) {
  const bool bias = call.params.integer("bias", 0) != 0;
  if (call.inputs.size() < (bias ? 3u : 2u) || call.outputs.size() != 1)
    throw InvalidModel(text(op, " takes x, weight", bias ? ", bias" : "", " and gives one output; got ",
                            call.inputs.size(), " inputs and ", call.outputs.size(),
                            " outputs. Check the call against kernels/conv/conv.h."));
  for (size_t i = 0; i < 2; ++i) require_dtype(call.inputs[i], dtype, text(op, ": input ", i));
  if (bias) require_dtype(call.inputs[2], dtype == DType::i8 ? DType::i32 : dtype, text(op, ": the bias"));
  require_dtype(call.outputs[0], dtype, text(op, ": the output"));
}

}  // namespace

WindowGeometry window_geometry(std::string_view op, const KernelCall& call, const TensorView& x, const TensorView& y,
                               int64_t kernel_h, int64_t kernel_w) {
  if (x.rank != 4 || y.rank != 4)
    throw Unsupported(text(op, ": x and the output must be [N,C,H,W]; got ", view_text(x), " and ", view_text(y),
                           ". Add or merge axes first."));
  const std::vector<int64_t> stride = window_param(op, call, "stride", 1, 1);
  const std::vector<int64_t> padding = window_param(op, call, "padding", 0, 0);
  const std::vector<int64_t> dilation = window_param(op, call, "dilation", 1, 1);
  WindowGeometry g;
  g.batch = x.dims[0];
  g.channels = x.dims[1];
  g.out_channels = y.dims[1];
  g.groups = call.params.integer("groups", 1);
  if (g.groups < 1 || g.channels % g.groups != 0 || g.out_channels % g.groups != 0)
    throw InvalidModel(text(op, ": groups must divide the channels; got groups ", g.groups, " with ", g.channels,
                            " in and ", g.out_channels, " out. Check the layer's groups."));
  if (y.dims[0] != x.dims[0])
    throw InvalidModel(text(op, ": x and the output must have one batch size; got ", x.dims[0], " and ", y.dims[0],
                            ". Infer the output's shape from x."));
  const bool both_sides = padding.size() == 4;
  g.height = x.dims[2];
  g.width = x.dims[3];
  g.out_height = y.dims[2];
  g.out_width = y.dims[3];
  g.rows = {kernel_h, stride[0], dilation[0], padding[0], padding[both_sides ? 2 : 0]};
  g.columns = {kernel_w, stride[1], dilation[1], padding[1], padding[both_sides ? 3 : 1]};
  return g;
}

WindowGeometry conv_geometry(const KernelCall& call, DType dtype) {
  check_conv_operands("conv2d", call, dtype);
  const TensorView& x = call.inputs[0];
  const TensorView& weight = call.inputs[1];
  const TensorView& y = call.outputs[0];
  if (weight.rank != x.rank || weight.rank < 3)
    throw InvalidModel(text("conv2d: the weight must have the rank of x; got x ", view_text(x), ", weight ",
                            view_text(weight), ". Check the layer's weight."));
  const WindowGeometry g = window_geometry("conv2d", call, x, y, weight.dims[2], weight.dims[3]);
  if (weight.dims[0] != g.out_channels || weight.dims[1] * g.groups != g.channels)
    throw InvalidModel(text("conv2d: the weight must be [out_channels, in_channels/groups, ...]; got x ", view_text(x),
                            ", weight ", view_text(weight), ", output ", view_text(y), ", groups ", g.groups,
                            ". Check the layer's channels."));
  return g;
}

}  // namespace hetnn::kernels
