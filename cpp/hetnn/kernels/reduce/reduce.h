// Reductions.
//
// reduce   x -> y. params op: sum mean max min prod any all argmax argmin; axes ([] = all axes). Whether the reduced
// axes
//          are kept as 1 is read from the output's shape. Plain or nhwc. argmax and argmin give i64 over one axis (or
//          over the flattened input when axes = []), the first of equals, NaN before numbers; any and all give bool.
//          max and min propagate NaN. f32 sums accumulate in f32 with several partial sums (pairwise over blocks).
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_reduce(const KernelCall& call);
std::unique_ptr<Kernel> make_reduce(const KernelCall& call);

std::span<const Variant> reduce_variants();

}  // namespace hetnn::kernels
