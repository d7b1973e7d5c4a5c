// The eigenvalues of symmetric matrices with three diagonals.
#pragma once

#include "hetnn/ops/linalg/matrices.h"

namespace hetnn::ops {

/// From small to large; `beside` has the elements next to the diagonal, all finite. Empty where they are not found. In
/// double for all types: what many rotations add up to in float is too far off.
Vector<double> tridiagonal_eigenvalues(const Vector<double>& diagonal, const Vector<double>& beside);

}  // namespace hetnn::ops
