// Elementwise kernels. Any rank up to 8, plain or nhwc in any mixture (one layout for all operands is the fast case).
//
// unary   x -> y of the same shape. params op, values ([] constants of the op).
//         ops: identity relu relu6 clip(lo,hi) leaky_relu(slope) elu(alpha) silu hardswish hardsigmoid sigmoid tanh
//         gelu gelu_tanh mish softplus abs neg square sqrt rsqrt reciprocal exp log sin cos erf floor ceil round sign
//         scale(a) shift(b) logical_not isnan
// binary  a, b (broadcast together) -> y. params op.
//         ops: add sub mul div pow max min remainder floor_div prelu; comparisons eq ne lt le gt ge and logical_and
//         logical_or logical_xor give bool. `prelu`: b holds the slopes. Max and min propagate NaN. alpha of torch's
//         add: use nary with coefficients.
// where   condition (bool), a, b (all broadcast) -> y.
// cast    x -> y of another dtype; float to integer truncates, anything to bool is x != 0.
// nary    x_0 ... x_{n-1} of the output's shape (or broadcast), f32 -> y.  n from 1 to 100.
//         params op: add mul max min; coefficients ([] = all 1; add only); group (0 = default of the machine,
//         else 2..16: how many streams one pass over a tile reads; products and extremes at most 4); deterministic (0;
//         1 keeps the order and roundings of a chain of two-operand steps).
// f32 is vectorized; f64, i64, i32, i8, u8, bool run through plain loops.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

std::unique_ptr<Kernel> make_unary(const KernelCall& call);
std::unique_ptr<Kernel> make_binary(const KernelCall& call);
std::unique_ptr<Kernel> make_where(const KernelCall& call);
std::unique_ptr<Kernel> make_cast(const KernelCall& call);
std::unique_ptr<Kernel> make_nary(const KernelCall& call);

std::span<const Variant> elementwise_variants();

}  // namespace hetnn::kernels
