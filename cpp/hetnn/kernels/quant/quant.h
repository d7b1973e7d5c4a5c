// Conversions between element types, plain or nhwc on either side.
//
// quantize    x (f32) -> y (i8, u8, i16): clamp(round(x / scale) + zero_point), to nearest even, NaN as 0.
//             params scale, zero_point.
// dequantize  x (i8, u8, i16, i32) -> y (f32): scale * (x - zero_point). params scale, zero_point.
// lookup      x (i8) -> y (i8): table[x + 128]. param table: 256 integers.
// unary_i8    x (i8) -> y (i8): an elementwise function of one value by its table (quant/tables.h), made with it.
// cast        x -> y of another dtype, as base/convert.h says.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_quantize(const KernelCall& call);
std::unique_ptr<Kernel> make_quantize(const KernelCall& call);
Refusal serves_dequantize(const KernelCall& call);
std::unique_ptr<Kernel> make_dequantize(const KernelCall& call);
Refusal serves_lookup(const KernelCall& call);
std::unique_ptr<Kernel> make_lookup(const KernelCall& call);
Refusal serves_integer_unary(const KernelCall& call);
std::unique_ptr<Kernel> make_integer_unary(const KernelCall& call);
Refusal serves_cast(const KernelCall& call);
std::unique_ptr<Kernel> make_cast(const KernelCall& call);

std::span<const Variant> quant_variants();

}  // namespace hetnn::kernels
