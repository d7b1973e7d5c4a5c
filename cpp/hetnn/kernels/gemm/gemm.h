// Matrix products.
//
// linear   inputs x [..., K] plain; weight [N, K] packed; bias [N] when param bias = 1; operands of the steps.
//          output [..., N] plain.  y = x * weight^T + bias
//          params bias (0)
// linear_narrow  the same, of a weight of f16 or bf16; x, bias and output are f32.
// linear_i8  linear of quantized i8, bias i32, all of them packed; steps relu, clamp, one sum. Scales and zero
//          points are the params that integer_product.h reads.
// matmul_i8  matmul of two quantized i8, one scale each; steps relu and clamp.
// block_linear  inputs x [..., K] plain; codes [N, B, bytes], scales [N, B], f32 or f16, and zero points [N, B] u8 when
//          param zero_points = 1, all of them packed; bias [N] when param bias = 1; operands of the steps.
//          output [..., N] plain. What they mean stands in ops/matmul/block_linear.cpp.
//          params bits, zero_points (0), bias (0)
// matmul   inputs a [..., M, K], b [..., K, N], both plain and given at run time; leading axes broadcast; a rank-1
// operand
//          counts as a row (a) or a column (b). output [..., M, N] plain.
//          params transpose_a (0), transpose_b (0): the operand's last two axes are stored the other way round;
// grouped_matmul  inputs x [M, K] plain; weights [E, K, N] packed, f32, f16 or bf16; ends [E] i64 or i32: the row
//          behind each group's last.
//          output [M, N] plain, zeros behind the last group. It refuses ends that fall or lie behind row M.
//
// f32; f64 and integers run in matmul through plain loops.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_linear(const KernelCall& call);
std::unique_ptr<Kernel> make_linear(const KernelCall& call);
Refusal serves_matmul(const KernelCall& call);
std::unique_ptr<Kernel> make_matmul(const KernelCall& call);
Refusal serves_integer_matmul(const KernelCall& call);
std::unique_ptr<Kernel> make_integer_matmul(const KernelCall& call);
Refusal serves_grouped_matmul(const KernelCall& call);
std::unique_ptr<Kernel> make_grouped_matmul(const KernelCall& call);
int64_t packed_grouped_bytes(const KernelCall& call, int input);
std::vector<std::byte> pack_grouped(const KernelCall& call, int input, std::span<const std::byte> weight);
Refusal serves_block_linear(const KernelCall& call);
std::unique_ptr<Kernel> make_block_linear(const KernelCall& call);
bool is_block_weight(const KernelCall& call, int input);
int64_t packed_block_bytes(const KernelCall& call, int input);
std::vector<std::byte> pack_block(const KernelCall& call, int input, std::span<const std::byte> weight);
bool is_linear_weight(const KernelCall& call, int input);
std::vector<std::byte> pack_linear(const KernelCall& call, int input, std::span<const std::byte> weight);

std::span<const Variant> gemm_variants();

}  // namespace hetnn::kernels
