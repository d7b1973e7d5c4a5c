// Pooling over windows.
//
// max_pool2d           x [N,C,H,W] nhwc (or plain, through a copy) -> [N,C,OH,OW]. params kernel [kh,kw]; stride (=
// kernel);
//                      padding [h,w] or [top,left,bottom,right] (0); dilation (1,1). The output's shape
//                      says whether ceil mode was used. NaN wins.
// avg_pool2d           params kernel, stride, padding; count_include_pad (1); divisor_override (0 = none).
// adaptive_avg_pool2d  the output's shape says the grid ([N,C,1,1] = global).
// max_pool_gradient    x [N,C,H,W], gradient [N,C,OH,OW], nhwc or plain -> as x. params as max_pool2d's.
// max_pool_indices     x [N,C,H,W] nhwc or plain -> i64 [N,C,OH,OW] plain. params as max_pool2d's.
// max_pool2d_i8        the largest integer, of quantized i8 at one scale.
// max_pool2d_f16       the largest value, of f16 or bf16 as they are.
// f32 else.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

std::unique_ptr<Kernel> make_max_pool2d(const KernelCall& call);
Refusal serves_pool2d(const KernelCall& call);
Refusal serves_integer_max_pool2d(const KernelCall& call);
Refusal serves_half_max_pool2d(const KernelCall& call);
Refusal serves_max_pool_gradient(const KernelCall& call);
std::unique_ptr<Kernel> make_max_pool_gradient(const KernelCall& call);
Refusal serves_max_pool_indices(const KernelCall& call);
std::unique_ptr<Kernel> make_max_pool_indices(const KernelCall& call);
std::unique_ptr<Kernel> make_avg_pool2d(const KernelCall& call);
std::unique_ptr<Kernel> make_adaptive_avg_pool2d(const KernelCall& call);

std::span<const Variant> pool_variants();

}  // namespace hetnn::kernels
