// Reflections that make matrices upper triangular: what qr and geqrf share.
#pragma once

#include <vector>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {

/// Turns `a` into R on and above its diagonal, and below it the vectors of the reflections H = I - tau v v^T, whose v
/// is 1 on the diagonal and 0 above: A = H_1 ... H_k R. Gives the taus. LAPACK's signs: each reflection makes the
/// diagonal of the sign that loses no digits.
std::vector<double> triangularize(Matrix& a);

/// Puts H_1 ... H_k, of vectors below the diagonal of `a`, before `m`.
void reflect_all(Matrix& m, const Matrix& a, const std::vector<double>& taus);

}  // namespace hetnn::ops
