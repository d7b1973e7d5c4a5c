// Signals.
//
// dft   x [...,S,...,1 or 2] -> y [...,K,...,2], or [...,N,...,1] of the inverse of one half; plain f32. params axis
// (-2),
//       length (0: as x says), inverse (0), onesided (0).
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_dft(const KernelCall& call);
std::unique_ptr<Kernel> make_dft(const KernelCall& call);

std::span<const Variant> signal_variants();

}  // namespace hetnn::kernels
