// The microkernel of bf16 by the instruction that multiplies pairs (AVX512_BF16).
#pragma once

#include "hetnn/kernels/gemm/brain_micro.h"

namespace hetnn::kernels {

/// Whether this machine has it, and AVX-512 is in use.
bool multiplies_brain_pairs();

/// Only where it has.
const BrainMicroTable& brain_dots_table();

}  // namespace hetnn::kernels
