// Scaled dot product attention: softmax(q k^T * scale + mask) v, without materializing the score matrix of all rows.
//
// attention   inputs q, k, v, mask when param mask = 1.
//             Operands are either [B, heads, L, D] plain, or [B, L, width] plain with heads lying side by side: head h
//             of q is elements q_offset + h*D .. of a row. So one fused [B, L, 3*heads*D] tensor can be passed three
//             times with offsets 0, heads*D, 2*heads*D; or [B, heads, L, D] by strides, D side by side. output
//             [B, heads, L, Dv] or [B, L, heads*Dv]. params heads (from q when it has rank 4), kv_heads (= heads;
//             fewer: grouped queries), head_dim and value_dim (needed for rank 3), q_offset, k_offset, v_offset (0),
//             scale (0 = 1/sqrt(D)), is_causal (0), mask (0). mask: bool (true = may attend) or f32 (added), broadcast
//             to [B, heads, Lq, Lk]; rank 2 to 4. undefined ("masked") as the operator's.
// f32.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_attention(const KernelCall& call);
std::unique_ptr<Kernel> make_attention(const KernelCall& call);

std::span<const Variant> attention_variants();

}  // namespace hetnn::kernels
