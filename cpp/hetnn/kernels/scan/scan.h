// Sums and products of all elements up to each, along an axis.
//
// cumsum, cumprod   x -> y: same shape, plain f32, joined in f64. params axis (0), exclusive (0), reverse (0).
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_cumsum(const KernelCall& call);
std::unique_ptr<Kernel> make_cumsum(const KernelCall& call);
Refusal serves_cumprod(const KernelCall& call);
std::unique_ptr<Kernel> make_cumprod(const KernelCall& call);

std::span<const Variant> scan_variants();

}  // namespace hetnn::kernels
