// Elementwise kernels. Any rank up to 8, plain or nhwc in any mixture (one layout for all operands is the fast case).
//
// unary   x -> y of the same shape, f32. params op (a function of one operand, ops/elementwise/formulas.inc), values
//         ([] its constants).
// binary  a, b (broadcast together) -> y, f32. params op (a function of two operands; of prelu, b holds the slopes),
// alpha of torch's add: use nary with coefficients. where   condition (bool), a, b (all broadcast) -> y, of any type.
// binary_i8  the same of two quantized i8: in f32 on the reals, rounded once. params NAME.scales and NAME.zeros of the
//         operator's inputs and of y.
// compare see compare.h.
// nary    x_0 ... x_{n-1} of the output's shape (or broadcast), f32 -> y.  n from 1 to 100.
//         params op: add mul maximum minimum; coefficients ([] = all 1; add only); fan_in (0 = default of the machine,
//         else 2..16: how many streams one pass over a tile reads; products and extremes at most 4); deterministic (0;
//         1 keeps the order and roundings of a chain of two-operand steps).
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_unary(const KernelCall& call);
std::unique_ptr<Kernel> make_unary(const KernelCall& call);
Refusal serves_binary(const KernelCall& call);
std::unique_ptr<Kernel> make_binary(const KernelCall& call);
Refusal serves_integer_binary(const KernelCall& call);
std::unique_ptr<Kernel> make_integer_binary(const KernelCall& call);
Refusal serves_where(const KernelCall& call);
std::unique_ptr<Kernel> make_where(const KernelCall& call);
Refusal serves_nary(const KernelCall& call);
std::unique_ptr<Kernel> make_nary(const KernelCall& call);

std::span<const Variant> elementwise_variants();

}  // namespace hetnn::kernels
