// Convolutions.
//
// conv2d            inputs x [N,C,H,W] (nhwc or plain); weight [O, C/groups, kh, kw] packed; bias [O] when param bias =
// 1;
//                   operands of the steps. output [N,O,OH,OW], nhwc (or plain, through a copy).
//                   params stride [sh,sw] (1,1); padding [h,w] or [top,left,bottom,right] (0); dilation [dh,dw] (1,1);
//                   groups (1); bias (0); deterministic (0). A row an algorithm:
//   conv2d_direct        a product whose rows are the windows' pixels, of any window
//   conv2d_few_channels  the same of a copy with a border, of which a row of a window is one run: up to 8 channels
//   conv2d_planes        vectors over the pixels of a plain image of up to 4 channels
//   conv2d_winograd, conv2d_winograd_2x2  F(4x4, 3x3), F(2x2, 3x3)
//   conv2d_depthwise, conv2d_grouped  vectors over channels, of groups of one, and of 4 or 8
// conv_transpose2d  weight [C, O/groups, kh, kw] packed; further param output_padding is implied by the output's shape.
//   conv_transpose2d_phases  a product for outputs that share their taps
//   conv_transpose2d_direct  of strides of 1: the convolution by the kernel turned around
// conv2d_weight_gradient  inputs x [N,C,H,W], gradient [N,O,OH,OW], each nhwc or plain; output [O, C/groups, kh, kw]
//                   plain. params kernel [kh,kw], and stride, padding, dilation, groups of the convolution
// scaled_conv2d     x [N,C,H,W] times scale [N or 1,C,1,1], plus a shift, clipped at 0 where param relu = 1, then a 1x1
//                   convolution: inputs x, weight [O,C,1,1] packed, scale, bias when param bias = 1, shift (as scale)
//                   when param shift = 1, operands of the steps.
// pointwise_depthwise_conv2d
//                   a 1x1 convolution, a function of its result, and a convolution a channel of that: inputs x, both
//                   weights packed, the first one's bias when param pointwise_bias = 1, the other's when param bias =
//                   1, operands of the steps. params of conv2d for the second one; function, values as a step has them,
//                   "" for none
// conv2d_i8         conv2d of quantized i8, bias i32, all of them packed; steps relu, clamp, one sum. Scales and zero
//                   points are the params that gemm/integer_product.h reads.
// conv2d_i8_winograd  the same by F(4x4, 3x3), bit for bit
// conv2d_bf16       conv2d of bf16, weight and bias packed; steps one sum of two, then relu, clamp.
// f32 else. The sum runs over taps, then input channels, in runs of 256 products; bias and residual are added to it.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Work direct_conv_work(const KernelCall& call, const Machine& machine, int threads);
Work few_channels_work(const KernelCall& call, const Machine& machine, int threads);
Work planes_work(const KernelCall& call, const Machine& machine, int threads);
Work sliding_work(const KernelCall& call, const Machine& machine, int threads);
template <int64_t kSide>
Work winograd_work(const KernelCall& call, const Machine& machine, int threads);
Refusal serves_scaled_conv2d(const KernelCall& call);
std::unique_ptr<Kernel> make_scaled_conv2d(const KernelCall& call);
bool is_conv_weight(const KernelCall& call, int input);
std::vector<std::byte> pack_scaled_conv2d(const KernelCall& call, int input, std::span<const std::byte> weight);
int64_t packed_scaled_conv2d_bytes(const KernelCall& call, int input);

bool is_band_weight(const KernelCall& call, int input);
Refusal serves_bands(const KernelCall& call);
std::unique_ptr<Kernel> make_bands(const KernelCall& call);
std::vector<std::byte> pack_bands(const KernelCall& call, int input, std::span<const std::byte> weight);
int64_t packed_bands_bytes(const KernelCall& call, int input);
Work bands_work(const KernelCall& call, const Machine& machine, int threads);

Refusal serves_integer_conv2d(const KernelCall& call);
std::unique_ptr<Kernel> make_integer_conv2d(const KernelCall& call);
std::vector<std::byte> pack_integer_conv2d(const KernelCall& call, int input, std::span<const std::byte> weight);
int64_t packed_integer_conv2d_bytes(const KernelCall& call, int input);

Work integer_conv_work(const KernelCall& call, const Machine& machine, int threads);
Refusal serves_integer_winograd(const KernelCall& call);
std::unique_ptr<Kernel> make_integer_winograd(const KernelCall& call);
std::vector<std::byte> pack_integer_winograd(const KernelCall& call, int input, std::span<const std::byte> weight);
int64_t packed_integer_winograd_bytes(const KernelCall& call, int input);
Work integer_winograd_work(const KernelCall& call, const Machine& machine, int threads);

Refusal serves_brain_conv2d(const KernelCall& call);
bool halves_pay_conv2d(const KernelCall& call);
std::unique_ptr<Kernel> make_brain_conv2d(const KernelCall& call);
std::vector<std::byte> pack_brain_conv2d(const KernelCall& call, int input, std::span<const std::byte> weight);
int64_t packed_brain_conv2d_bytes(const KernelCall& call, int input);

Refusal serves_conv2d_weight_gradient(const KernelCall& call);
std::unique_ptr<Kernel> make_conv2d_weight_gradient(const KernelCall& call);

std::span<const Variant> conv_transpose2d_rows();
std::span<const Variant> conv_variants();

}  // namespace hetnn::kernels
