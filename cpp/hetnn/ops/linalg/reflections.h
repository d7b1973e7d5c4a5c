// Products of reflections.
#pragma once

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {

/// x [M,P] becomes H_1 ... H_K x, or its transpose times x: H = I - tau[k] v v^T, whose v is what column k of `factors`
/// [M,N] has below the diagonal, 1 on it and 0 above. For float and double. It is
/// faster where `identity` says that x is a square identity.
template <typename T>
void reflect(const Matrix<T>& factors, const Vector<T>& tau, bool transposed, Matrix<T>& x, bool identity = false);

}  // namespace hetnn::ops
