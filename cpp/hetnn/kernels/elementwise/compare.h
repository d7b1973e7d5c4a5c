// Comparisons and logic, to truth values of a byte each, 0 or 1. Any rank up to 8, plain or nhwc in any mixture.
//
// compare  a, b (broadcast together), both f32, i32, i64, u8 or bool -> y, bool; of logical_not x -> y. params op: eq
// ne
//          gt ge lt le logical_not, and of u8 and bool logical_and logical_or logical_xor.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_compare(const KernelCall& call);
std::unique_ptr<Kernel> make_compare(const KernelCall& call);

}  // namespace hetnn::kernels
