// Householder's reflections, which make matrices upper triangular.
#pragma once

#include <vector>

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {

/// Makes `a` its upper triangular factor, and below the diagonal leaves in column k the vector of reflection k, which
/// is I - tau v v^T with v 1 on the diagonal and 0 above. Returns each tau.
std::vector<double> reflect_to_upper(Matrix& a);

/// Applies reflection `k` of `factors` to the columns of `m` from `first` on.
void reflect(Matrix& m, const Matrix& factors, double tau, int64_t k, int64_t first);

}  // namespace hetnn::ops
