// Reads the geometry of sliding windows.
#include "hetnn/kernels/conv/geometry.h"

#include "hetnn/base/error.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

// One for each spatial axis, of paddings on either side of it.
std::vector<int64_t> window_param(const KernelCall& call, std::string_view name, int64_t fallback) {
  std::vector<int64_t> values = call.params.integers(name, {});
  if (values.empty()) values.assign(2, fallback);
  if (values.size() == 1) values.push_back(values[0]);
  return values;
}

}  // namespace

Refusal refuse_windows(const KernelCall& call) {
  for (const TensorView& view : {call.inputs[0], call.outputs[0]})
    if (view.rank != 4) return text("windows slide over images [N,C,H,W]; got ", view_text(view), ".");
  const auto refused = [&](std::string_view name, int64_t fallback, int64_t least) -> Refusal {
    for (const int64_t value : window_param(call, name, fallback))
      if (value < least) return text("windows take a ", name, " of ", least, " or more; got ", value, ".");
    return std::nullopt;
  };
  if (Refusal out = refused("stride", 1, 1)) return out;
  if (Refusal out = refused("dilation", 1, 1)) return out;
  return refused("padding", 0, 0);
}

WindowGeometry window_geometry(const KernelCall& call, const TensorView& x, const TensorView& y, int64_t kernel_h,
                               int64_t kernel_w) {
  const std::vector<int64_t> stride = window_param(call, "stride", 1);
  const std::vector<int64_t> padding = window_param(call, "padding", 0);
  const std::vector<int64_t> dilation = window_param(call, "dilation", 1);
  HETNN_ASSERT(x.rank == 4 && y.rank == 4 && x.dims[0] == y.dims[0], view_text(x), " and ", view_text(y));
  WindowGeometry g;
  g.batch = x.dims[0];
  g.channels = x.dims[1];
  g.out_channels = y.dims[1];
  g.groups = call.params.integer("groups", 1);
  const bool both_sides = padding.size() == 4;
  g.height = x.dims[2];
  g.width = x.dims[3];
  g.out_height = y.dims[2];
  g.out_width = y.dims[3];
  g.rows = {kernel_h, stride[0], dilation[0], padding[0], padding[both_sides ? 2 : 0]};
  g.columns = {kernel_w, stride[1], dilation[1], padding[1], padding[both_sides ? 3 : 1]};
  return g;
}

WindowGeometry pool_geometry(const KernelCall& call, const TensorView& x, const TensorView& y) {
  const std::vector<int64_t> kernel = window_param(call, "kernel", 1);
  Params params = call.params;
  if (params.integers("stride", {}).empty()) params.set("stride", kernel);
  return window_geometry({call.inputs, call.outputs, params}, x, y, kernel[0], kernel[1]);
}

Refusal serves_windows(std::string_view kernel, const KernelCall& call, DType dtype) {
  const bool bias = call.params.integer("bias", 0) != 0;
  Terms terms(kernel, call);
  // Integers may have a result of reals, and then such a bias.
  const bool reals = dtype == DType::i8 && call.outputs[0].dtype == DType::f32;
  reals ? terms.reads(dtype, 2) : terms.of(dtype, 2);
  if (terms.met() && bias && !reals) terms.is(call.inputs[2], dtype == DType::i8 ? DType::i32 : dtype, "the bias");
  return terms.hold(refuse_windows(call));
}

WindowGeometry conv_geometry(const KernelCall& call) {
  const TensorView& weight = call.inputs[1];
  const WindowGeometry g = window_geometry(call, call.inputs[0], call.outputs[0], weight.dims[2], weight.dims[3]);
  HETNN_ASSERT(weight.rank == 4 && weight.dims[0] == g.out_channels && weight.dims[1] * g.groups == g.channels,
               "weight ", view_text(weight), " of ", g.groups, " groups, x of ", g.channels, " channels");
  return g;
}

}  // namespace hetnn::kernels
