// A kernel whose steps end in a narrower type than it computes.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// The kernel of a call that the variant computes in f32 and whose steps leave a value of f16 or bf16, which `written`
/// is a view of, with the shape and layout of the call's first output: the result is made in scratch, and converted.
std::unique_ptr<Kernel> make_narrowed(const Variant& variant, const KernelCall& call, const TensorView& written);

}  // namespace hetnn::kernels
