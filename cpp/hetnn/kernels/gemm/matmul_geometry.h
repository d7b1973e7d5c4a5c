// Sizes of a matmul of operands that are given at run time, and where its matrices begin.
#pragma once

#include <vector>

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

struct MatmulGeometry {
  int64_t m = 1, n = 1, k = 1;
  bool transpose_a = false, transpose_b = false;
  std::vector<int64_t> a_offsets, b_offsets;  // elements, per matrix of the broadcast batch
};

/// Whether a kernel can take both operands as matrices: they lie plain and are of one type.
Refusal serves_matrices(std::string_view kernel, const KernelCall& call);

MatmulGeometry matmul_geometry(const KernelCall& call);

}  // namespace hetnn::kernels
