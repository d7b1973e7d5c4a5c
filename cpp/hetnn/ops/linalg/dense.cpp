// The steps for the build's instruction set, and the choice among instruction sets.
#include "hetnn/ops/linalg/dense.h"

#define EIGEN_DONT_PARALLELIZE
#define HETNN_DENSE dense_baseline
#include "hetnn/ops/linalg/dense-inl.h"

namespace hetnn::ops {
namespace {

const DenseSteps& best() {
  static const DenseSteps& steps = avx2_steps() ? *avx2_steps() : baseline_steps();
  return steps;
}

}  // namespace

const DenseSteps& baseline_steps() {
  static constexpr DenseSteps steps{dense_baseline::factor_lu<double>, dense_baseline::solve_triangular<double>,
                                    dense_baseline::bidiagonalize};
  return steps;
}

// Four floats at once are near enough to eight.
void factor_lu(float* a, int64_t n, int64_t* order) { dense_baseline::factor_lu(a, n, order); }

void factor_lu(double* a, int64_t n, int64_t* order) { best().factor_lu(a, n, order); }

void solve_triangular(const float* a, int64_t n, float* x, int64_t columns, bool upper) {
  dense_baseline::solve_triangular(a, n, x, columns, upper);
}

void solve_triangular(const double* a, int64_t n, double* x, int64_t columns, bool upper) {
  best().solve_triangular(a, n, x, columns, upper);
}

void bidiagonalize(const double* a, int64_t rows, int64_t columns, double* diagonal, double* above) {
  best().bidiagonalize(a, rows, columns, diagonal, above);
}

}  // namespace hetnn::ops
