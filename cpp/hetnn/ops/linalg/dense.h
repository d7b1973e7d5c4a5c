// What factors of large matrices spend their time in, in double for the machine's instruction set. Matrices are stored
// column after column, without gaps.
#pragma once

#include <cstdint>

namespace hetnn::ops {

/// An [n,n] matrix becomes L U, its rows exchanged for the largest pivots: row k of L U is row order[k] of it.
void factor_lu(float* a, int64_t n, int64_t* order);
void factor_lu(double* a, int64_t n, int64_t* order);

/// x [n,columns] becomes A^-1 x for a triangular A [n,n], its upper or lower half.
void solve_triangular(const float* a, int64_t n, float* x, int64_t columns, bool upper);
void solve_triangular(const double* a, int64_t n, double* x, int64_t columns, bool upper);

/// The diagonal [columns] and the one above it [columns-1] of a matrix with two diagonals and the singular values of a
/// [rows,columns], which is not wide.
void bidiagonalize(const double* a, int64_t rows, int64_t columns, double* diagonal, double* above);

/// The steps in double, as one instruction set takes them.
struct DenseSteps {
  void (*factor_lu)(double* a, int64_t n, int64_t* order);
  void (*solve_triangular)(const double* a, int64_t n, double* x, int64_t columns, bool upper);
  void (*bidiagonalize)(const double* a, int64_t rows, int64_t columns, double* diagonal, double* above);
};

/// Those of the build's instruction set.
const DenseSteps& baseline_steps();

/// Those of AVX2 with fused products, four doubles at once; null where they are not compiled or the machine lacks it.
const DenseSteps* avx2_steps();

}  // namespace hetnn::ops
