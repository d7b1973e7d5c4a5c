// Elements along an axis in order, lanes shared among threads.
//
// sort   x -> values, indices (i64): plain f32 and i64. params axis (-1), descending (0), stable (1).
// topk   x -> the k first of them. params k, axis (-1), largest (1), sorted (1).
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_sort(const KernelCall& call);
std::unique_ptr<Kernel> make_sort(const KernelCall& call);
Refusal serves_topk(const KernelCall& call);
std::unique_ptr<Kernel> make_topk(const KernelCall& call);

std::span<const Variant> order_variants();

}  // namespace hetnn::kernels
