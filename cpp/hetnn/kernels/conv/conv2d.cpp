// conv2d: choice of the algorithm.
#include <algorithm>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/conv/planes.h"
#include "hetnn/kernels/conv/sliding.h"
#include "hetnn/kernels/conv/winograd.h"
#include "hetnn/kernels/gemm/brain_product.h"
#include "hetnn/kernels/gemm/integer_product.h"
#include "hetnn/kernels/gemm/panels.h"
#include "hetnn/kernels/layout_adapter.h"
#include "hetnn/kernels/packing.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

std::string algorithm_of(const KernelCall& call) { return call.params.text("algorithm", "direct"); }
bool is_winograd(const KernelCall& call) { return algorithm_of(call) == "winograd"; }
// Depthwise convolutions have no choice.
bool slides(const KernelCall& call, const WindowGeometry& g) {
  return g.depthwise() || algorithm_of(call) == "grouped";
}

PanelShape panel_shape(const KernelCall& call, const WindowGeometry& g) {
  return slides(call, g) ? sliding_shape(g) : direct_shape(g);
}

// All operands but a few-channel image are nhwc here.
std::unique_ptr<Kernel> make_nhwc_conv(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  if (is_winograd(call)) return make_winograd_conv(call, g);
  if (slides(call, g)) return make_sliding_conv(call, g);
  return make_implicit_conv(call, g);
}

Refusal serves_nhwc_conv(const KernelCall& call) { return Terms("conv2d", call).steps_on_rows(); }

}  // namespace

std::unique_ptr<Kernel> make_implicit_conv(const KernelCall& call, const WindowGeometry& g) {
  if (has_few_channels(g)) return std::make_unique<FewChannelsConv<PanelProduct>>(call, g);
  return std::make_unique<DirectConv<PanelProduct>>(call, g);
}

Refusal serves_conv2d(const KernelCall& call) {
  Terms terms("conv2d", call);
  terms.hold(serves_windows("conv2d", call));
  if (!terms.met()) return terms;
  const std::string algorithm = algorithm_of(call);
  const WindowGeometry g = conv_geometry(call);
  terms.hold(algorithm == "direct" || algorithm == "winograd" || (algorithm == "grouped" && has_narrow_groups(g)),
             "knows the algorithms direct, winograd and, of narrow groups, grouped; got ", algorithm);
  if (algorithm == "winograd") terms.hold(refuse_winograd(g));
  return terms.hold(serves_with_nhwc(call, serves_nhwc_conv));
}

std::unique_ptr<Kernel> make_conv2d(const KernelCall& call) {
  const WindowGeometry g = conv_geometry(call);
  if (!is_winograd(call) && !g.depthwise() && planes_pay(call, g)) return make_planes_conv(call, g);
  // The first layer reads a plain image by itself, when nothing else needs a copy.
  if (!is_winograd(call) && !g.depthwise() && has_few_channels(g) && call.outputs[0].layout == Layout::nhwc)
    return std::make_unique<FewChannelsConv<PanelProduct>>(call, g);
  return make_with_nhwc(call, make_nhwc_conv);
}

bool is_conv_weight(const KernelCall& /*call*/, int input) { return input == 1; }

std::unique_ptr<Packer> make_conv2d_packer(const KernelCall& call, int input) {
  HETNN_ASSERT(input == 1, "conv2d packs input 1 only; got ", input);
  const WindowGeometry g = conv_geometry(call);
  if (is_winograd(call)) return make_winograd_packer(g);
  const PanelShape shape = panel_shape(call, g);
  const int64_t taps = g.taps();
  return std::make_unique<PanelPacker>(shape, PackStrides{shape.cols * shape.k * taps, shape.k * taps, 1, taps});
}

ops::Attrs choose_conv2d(const KernelCall& call) {
  if (call.params.has("algorithm")) return {};
  const WindowGeometry g = conv_geometry(call);
  if (has_narrow_groups(g)) return {{"algorithm", std::string("grouped")}};
  // Its sums and differences round otherwise.
  if (call.params.integer("deterministic", 0) == 0 && winograd_pays(g)) return {{"algorithm", std::string("winograd")}};
  return {};
}

std::span<const Variant> conv_variants() {
  static constexpr Variant kVariants[] = {
      {.name = "conv2d",
       .op = "conv2d",
       .speed = "conv",
       .serves = serves_conv2d,
       .create = make_conv2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .is_weight = is_conv_weight,
       .pack = pack_with<make_conv2d_packer>,
       .packed_bytes = packed_bytes_with<make_conv2d_packer>,
       .packer = make_conv2d_packer,
       .choose = choose_conv2d},
      {.name = "conv2d_i8",
       .op = "conv2d",
       .speed = "conv",
       .serves = serves_integer_conv2d,
       .create = make_integer_conv2d,
       .layout = LayoutWish::channels_last,
       .integers = true,
       .takes_steps = true,
       .is_weight = IntegerProduct::is_weight,
       .pack = pack_integer_conv2d,
       .packed_bytes = packed_integer_conv2d_bytes},
      {.name = "conv2d_bf16",
       .op = "conv2d",
       .speed = "conv",
       .serves = serves_brain_conv2d,
       .create = make_brain_conv2d,
       .layout = LayoutWish::channels_last,
       .halves = halves_pay_conv2d,
       .takes_steps = true,
       .is_weight = BrainProduct::is_weight,
       .pack = pack_brain_conv2d,
       .packed_bytes = packed_brain_conv2d_bytes},
      {.name = "gated_conv2d",
       .op = "gated_conv2d",
       .speed = "move",
       .serves = serves_gated_conv2d,
       .create = make_gated_conv2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .is_weight = is_conv_weight,
       .pack = pack_gated_conv2d,
       .packed_bytes = packed_gated_conv2d_bytes},
      {.name = "conv_transpose2d",
       .op = "conv_transpose2d",
       .speed = "conv",
       .serves = serves_conv_transpose2d,
       .create = make_conv_transpose2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .is_weight = is_conv_weight,
       .pack = pack_with<make_conv_transpose2d_packer>,
       .packed_bytes = packed_bytes_with<make_conv_transpose2d_packer>,
       .packer = make_conv_transpose2d_packer,
       .choose = choose_conv_transpose2d},
      {.name = "conv2d_weight_gradient",
       .op = "conv2d_weight_gradient",
       .speed = "conv",
       .serves = serves_conv2d_weight_gradient,
       .create = make_conv2d_weight_gradient,
       .layout = LayoutWish::written_plain},
  };
  return kVariants;
}

}  // namespace hetnn::kernels
