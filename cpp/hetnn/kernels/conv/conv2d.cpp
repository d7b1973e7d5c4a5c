// conv2d in f32: a row an algorithm.
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
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

Refusal serves_steps(const KernelCall& call) { return Terms("conv2d", call).steps_on_rows(); }

// Terms of a row: windows over f32, its own of their geometry, and steps on operands that may be turned to nhwc.
template <typename Own>
Refusal serves_with(std::string_view kernel, const KernelCall& call, const Own& own) {
  Terms terms(kernel, call);
  return terms.hold(serves_windows(kernel, call)).then([&] { return own(terms, conv_geometry(call)); }).then([&] {
    return serves_with_nhwc(call, serves_steps);
  });
}

Refusal serves_direct(const KernelCall& call) {
  return serves_with("conv2d_direct", call, [](Terms&, const WindowGeometry&) { return Refusal(); });
}

Refusal serves_few_channels(const KernelCall& call) {
  return serves_with("conv2d_few_channels", call, [](Terms& terms, const WindowGeometry& g) {
    return terms.hold(has_few_channels(g), "takes up to ", kFewChannels,
                      " channels of one group, of more than one tap and columns side by side; got ", g.channels,
                      " channels, ", g.taps(), " taps, groups ", g.groups, ", a dilation of ", g.columns.dilation);
  });
}

Refusal serves_planes(const KernelCall& call) {
  Terms terms("conv2d_planes", call);
  return terms.hold(serves_windows("conv2d_planes", call))
      .hold(call.inputs[0].layout == Layout::plain && call.outputs[0].layout == Layout::nhwc,
            "reads planes and writes channels last")
      .then([&] { return refuse_planes(conv_geometry(call)); })
      .steps_on_rows();
}

constexpr std::string_view winograd_name(int64_t side) { return side == 2 ? "conv2d_winograd_2x2" : "conv2d_winograd"; }

template <int64_t kSide>
Refusal serves_winograd(const KernelCall& call) {
  return serves_with(winograd_name(kSide), call, [&](Terms& terms, const WindowGeometry& g) {
    return terms.hold(refuse_winograd(g, kSide))
        .hold(call.params.integer("deterministic", 0) == 0, "rounds otherwise than sums of products do");
  });
}

Refusal serves_depthwise(const KernelCall& call) {
  return serves_with("conv2d_depthwise", call, [](Terms& terms, const WindowGeometry& g) {
    return terms.hold(g.depthwise(), "takes a group a channel; got groups ", g.groups, " of ", g.channels, " and ",
                      g.out_channels, " channels");
  });
}

Refusal serves_grouped(const KernelCall& call) {
  return serves_with("conv2d_grouped", call, [](Terms& terms, const WindowGeometry& g) {
    return terms.hold(has_narrow_groups(g), "takes groups of 4 or 8 channels, with outputs no fewer; got groups ",
                      g.groups, " of ", g.channels, " and ", g.out_channels, " channels");
  });
}

template <std::unique_ptr<Kernel> (*kMake)(const KernelCall&, const WindowGeometry&)>
std::unique_ptr<Kernel> make_nhwc(const KernelCall& call) {
  return kMake(call, conv_geometry(call));
}
template <std::unique_ptr<Kernel> (*kMake)(const KernelCall&, const WindowGeometry&)>
std::unique_ptr<Kernel> make_turned(const KernelCall& call) {
  return make_with_nhwc(call, make_nhwc<kMake>);
}

std::unique_ptr<Kernel> make_direct(const KernelCall& call, const WindowGeometry& g) {
  return std::make_unique<DirectConv<PanelProduct>>(call, g);
}
std::unique_ptr<Kernel> make_few(const KernelCall& call, const WindowGeometry& g) {
  return std::make_unique<FewChannelsConv<PanelProduct>>(call, g);
}

// The first layer reads a plain image by itself, when nothing else needs a copy.
std::unique_ptr<Kernel> make_few_channels(const KernelCall& call) {
  const bool reads_planes = call.outputs[0].layout == Layout::nhwc && !serves_steps(call);
  return reads_planes ? make_nhwc<make_few>(call) : make_turned<make_few>(call);
}

std::unique_ptr<Packer> make_direct_packer(const KernelCall& call, int /*input*/) {
  return make_panel_packer(conv_geometry(call), direct_shape(conv_geometry(call)));
}
std::unique_ptr<Packer> make_sliding_packer(const KernelCall& call, int /*input*/) {
  return make_panel_packer(conv_geometry(call), sliding_shape(conv_geometry(call)));
}
template <int64_t kSide>
std::unique_ptr<Kernel> make_winograd(const KernelCall& call, const WindowGeometry& g) {
  return make_winograd_conv(call, g, kSide);
}
std::unique_ptr<Packer> make_transformed_packer(const KernelCall& call, int /*input*/) {
  return make_winograd_packer(conv_geometry(call));
}

constexpr Variant row_of_f32(std::string_view name, ServesFunction serves, KernelFactory create, WorkFunction work) {
  return {.name = name,
          .op = "conv2d",
          .speed = "conv",
          .serves = serves,
          .create = create,
          .layout = LayoutWish::channels_last,
          .takes_steps = true,
          .is_weight = is_conv_weight,
          .work = work};
}
template <PackerFactory kPacker>
constexpr Variant packed_as(std::string_view packing, Variant row) {
  row.packing = packing;
  row.pack = pack_with<kPacker>;
  row.packed_bytes = packed_bytes_with<kPacker>;
  row.packer = kPacker;
  return row;
}
template <int64_t kSide>
constexpr Variant winograd_row() {
  return row_of_f32(winograd_name(kSide), serves_winograd<kSide>, make_turned<make_winograd<kSide>>,
                    winograd_work<kSide>);
}

}  // namespace

std::unique_ptr<Kernel> make_implicit_conv(const KernelCall& call, const WindowGeometry& g) {
  return has_few_channels(g) ? make_few(call, g) : make_direct(call, g);
}

std::unique_ptr<Packer> make_panel_packer(const WindowGeometry& g, const PanelShape& shape) {
  const int64_t taps = g.taps();
  return std::make_unique<PanelPacker>(shape, PackStrides{shape.cols * shape.k * taps, shape.k * taps, 1, taps});
}

bool is_conv_weight(const KernelCall& /*call*/, int input) { return input == 1; }

std::span<const Variant> conv_variants() {
  static constexpr Variant kVariants[] = {
      packed_as<make_direct_packer>(
          "conv2d_panels", row_of_f32("conv2d_direct", serves_direct, make_turned<make_direct>, direct_conv_work)),
      packed_as<make_direct_packer>("conv2d_panels", row_of_f32("conv2d_few_channels", serves_few_channels,
                                                                make_few_channels, few_channels_work)),
      packed_as<make_direct_packer>(
          "conv2d_panels", row_of_f32("conv2d_planes", serves_planes, make_nhwc<make_planes_conv>, planes_work)),
      packed_as<make_transformed_packer>("conv2d_winograd", winograd_row<4>()),
      packed_as<make_direct_packer>("conv2d_panels", winograd_row<2>()),
      packed_as<make_sliding_packer>("conv2d_sliding", row_of_f32("conv2d_depthwise", serves_depthwise,
                                                                  make_turned<make_sliding_conv>, sliding_work)),
      packed_as<make_sliding_packer>(
          "conv2d_sliding", row_of_f32("conv2d_grouped", serves_grouped, make_turned<make_sliding_conv>, sliding_work)),
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
       .packed_bytes = packed_integer_conv2d_bytes,
       .work = integer_conv_work},
      {.name = "conv2d_i8_winograd",
       .op = "conv2d",
       .speed = "conv",
       .serves = serves_integer_winograd,
       .create = make_integer_winograd,
       .layout = LayoutWish::channels_last,
       .integers = true,
       .takes_steps = true,
       .is_weight = IntegerProduct::is_weight,
       .pack = pack_integer_winograd,
       .packed_bytes = packed_integer_winograd_bytes,
       .work = integer_winograd_work},
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
      {.name = "scaled_conv2d",
       .op = "scaled_conv2d",
       .speed = "conv",
       .serves = serves_scaled_conv2d,
       .create = make_scaled_conv2d,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .is_weight = is_conv_weight,
       .pack = pack_scaled_conv2d,
       .packed_bytes = packed_scaled_conv2d_bytes,
       .work = direct_conv_work},
      {.name = "pointwise_depthwise_conv2d",
       .op = "pointwise_depthwise_conv2d",
       .speed = "conv",
       .serves = serves_bands,
       .create = make_bands,
       .layout = LayoutWish::channels_last,
       .takes_steps = true,
       .is_weight = is_band_weight,
       .pack = pack_bands,
       .packed_bytes = packed_bands_bytes,
       .work = bands_work},
      {.name = "conv2d_weight_gradient",
       .op = "conv2d_weight_gradient",
       .speed = "conv",
       .serves = serves_conv2d_weight_gradient,
       .create = make_conv2d_weight_gradient,
       .layout = LayoutWish::written_plain},
  };
  static const std::vector<Variant> all = [] {
    std::vector<Variant> out(std::begin(kVariants), std::end(kVariants));
    const std::span<const Variant> transposed = conv_transpose2d_rows();
    out.insert(out.end(), transposed.begin(), transposed.end());
    return out;
  }();
  return all;
}

}  // namespace hetnn::kernels
