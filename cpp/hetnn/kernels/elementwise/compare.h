// Comparisons and logic, to truth values of a byte each, 0 or 1, and functions of single numbers. Any rank up to 8,
// plain or nhwc in any mixture.
//
// compare  a, b (broadcast together), both f32, i32, i64, u8 or bool -> y, bool; of a predicate of one operand x -> y.
//          params op: a predicate, ops/elementwise/formulas.inc.
// bits     a, b (broadcast together) or x, integers of any type or bool -> y of the same. params op: a row of bits
//          there.
// doubles  a, b (broadcast together) or x, f64 -> y, f64. params op: a function there; values: its constants.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_compare(const KernelCall& call);
std::unique_ptr<Kernel> make_compare(const KernelCall& call);

Refusal serves_bits(const KernelCall& call);
std::unique_ptr<Kernel> make_bits(const KernelCall& call);

Refusal serves_doubles(const KernelCall& call);
std::unique_ptr<Kernel> make_doubles(const KernelCall& call);

}  // namespace hetnn::kernels
