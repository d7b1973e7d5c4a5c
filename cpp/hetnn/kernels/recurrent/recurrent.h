// Recurrent layers over a sequence, plain f32.
//
// lstm   x [T,B,4H], weight [4H,H], h [B,H], c [B,H] -> y [T,B,H], last h, last c. param reverse (0).
// gru    x [T,B,3H], weight [3H,H], h [B,H], bias [H] (optional) -> y [T,B,H], last h. param reverse (0).
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_lstm(const KernelCall& call);
std::unique_ptr<Kernel> make_lstm(const KernelCall& call);
Refusal serves_gru(const KernelCall& call);
std::unique_ptr<Kernel> make_gru(const KernelCall& call);

std::span<const Variant> recurrent_variants();

}  // namespace hetnn::kernels
