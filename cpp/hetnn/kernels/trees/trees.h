// Forests of decision trees, rows or trees shared among threads.
//
// tree_ensemble   x [N,F], nodes i32 [K,4], splits [K], roots i32 [T], weights [V], columns i32 [V] (where param
//                 columns is 1), ends i32 [L] (where param ends is 1) -> y [N,W], voted: plain. params width,
//                 aggregate (sum).
#pragma once

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

Refusal serves_tree_ensemble(const KernelCall& call);
std::unique_ptr<Kernel> make_tree_ensemble(const KernelCall& call);

std::span<const Variant> trees_variants();

}  // namespace hetnn::kernels
