// Normalizations and softmax.
//
// layer_norm     x plain; residual (x's shape) when param residual = 1; weight, bias (the normalized shape) when params
//                weight = 1, bias = 1. normalizes (x + residual) over the last `axes` (1) axes. eps (1e-5); epilogue
//                (""). With residual = 1 and two outputs the second receives x + residual.
// rms_norm       x; residual?; weight?: as above, without mean and bias.
// group_norm     x [N,C,...] plain or nhwc; weight [C]?, bias [C]?; params groups, eps, weight, bias .
// batch_norm_training   x [N,C,...] plain or nhwc; weight [C]?, bias [C]?; outputs y, mean [C], variance [C]; eps.
// batch_norm_gradient   gradient, x [N,C,...]; weight [C]?, mean [C], scale [C]; outputs as x, [C], [C].
// softmax, log_softmax   param axis; plain or nhwc.
// f32.
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Work softmax_work(const KernelCall& call, const Machine& machine, int threads);
Work log_softmax_work(const KernelCall& call, const Machine& machine, int threads);

Refusal serves_layer_norm(const KernelCall& call);
std::unique_ptr<Kernel> make_layer_norm(const KernelCall& call);
Refusal serves_rms_norm(const KernelCall& call);
std::unique_ptr<Kernel> make_rms_norm(const KernelCall& call);
Refusal serves_group_norm(const KernelCall& call);
std::unique_ptr<Kernel> make_group_norm(const KernelCall& call);
Refusal serves_batch_norm_training(const KernelCall& call);
std::unique_ptr<Kernel> make_batch_norm_training(const KernelCall& call);
Refusal serves_batch_norm_gradient(const KernelCall& call);
std::unique_ptr<Kernel> make_batch_norm_gradient(const KernelCall& call);
Refusal serves_softmax(const KernelCall& call);
std::unique_ptr<Kernel> make_softmax(const KernelCall& call);
Refusal serves_log_softmax(const KernelCall& call);
std::unique_ptr<Kernel> make_log_softmax(const KernelCall& call);

std::span<const Variant> norm_variants();

}  // namespace hetnn::kernels
