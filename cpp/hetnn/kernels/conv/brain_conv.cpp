// conv2d of bf16: products of pairs, rounded once. Of many products for each result; others are computed in f32.
#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/gemm/brain_product.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

PanelShape shape_of(const WindowGeometry& g) {
  return has_few_channels(g) ? few_channels_shape(g, 2) : direct_shape(g, 2);
}
PanelShape packed_shape(const WindowGeometry& g) { return BrainProduct::packed_shape(shape_of(g)); }

Refusal serves_nhwc_brains(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  return Terms("conv2d_bf16", call)
      .hold(g.groups == 1, "takes one group; got ", g.groups)
      .hold(BrainProduct::refuse_steps("conv2d_bf16", call));
}

std::unique_ptr<Kernel> make_few_channels(const KernelCall& call) {
  return std::make_unique<FewChannelsConv<BrainProduct>>(call, conv_geometry(call));
}

std::unique_ptr<Kernel> make_nhwc_brains(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  if (has_few_channels(g)) return make_few_channels(call);
  return std::make_unique<DirectConv<BrainProduct>>(call, g);
}

}  // namespace

Refusal serves_brain_conv2d(const KernelCall& call) {
  return Terms("conv2d_bf16", call).hold(serves_windows("conv2d_bf16", call, DType::bf16)).then([&] {
    return serves_with_nhwc(call, serves_nhwc_brains);
  });
}

std::unique_ptr<Kernel> make_brain_conv2d(const KernelCall& call) {
  // The first layer reads a plain image by itself.
  if (has_few_channels(conv_geometry(call)) && call.outputs[0].layout == Layout::nhwc) return make_few_channels(call);
  return make_with_nhwc(call, make_nhwc_brains);
}

bool halves_pay_conv2d(const KernelCall& call) {
  const PanelShape shape = shape_of(conv_geometry(call));
  return shape.rows >= kPanel && BrainProduct::pairs_pay(shape);
}

int64_t packed_brain_conv2d_bytes(const KernelCall& call, int input) {
  const WindowGeometry g = conv_geometry(call);
  return input == 2 ? BrainProduct::packed_bias_bytes(g.out_channels) : packed_shape(g).packed_bytes();
}

std::vector<std::byte> pack_brain_conv2d(const KernelCall& call, int input, std::span<const std::byte> weight) {
  const WindowGeometry g = conv_geometry(call);
  if (input == 2) return BrainProduct::pack_bias(g.out_channels, weight);
  const PanelShape shape = packed_shape(g);
  std::vector<std::byte> packed(static_cast<size_t>(shape.packed_bytes()));
  const std::vector<std::byte> turned = turned_filters<uint16_t>(g, weight);
  pack_float_panels(shape, turned.data(), {0, shape.k * shape.taps, shape.k, 1}, packed.data());
  return packed;
}

}  // namespace hetnn::kernels
