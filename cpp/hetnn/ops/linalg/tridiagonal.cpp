// The eigenvalues of symmetric matrices with three diagonals.
#include "hetnn/ops/linalg/tridiagonal.h"

#include <Eigen/Eigenvalues>
#include <algorithm>

namespace hetnn::ops {

Vector<double> tridiagonal_eigenvalues(const Vector<double>& diagonal, const Vector<double>& beside) {
  // Eigen takes for 0 what is small beside 1.
  const double largest = std::max(diagonal.cwiseAbs().maxCoeff(), beside.size() > 0 ? beside.cwiseAbs().maxCoeff() : 0);
  const double scale = largest > 0 ? largest : 1;
  Eigen::SelfAdjointEigenSolver<Matrix<double>> found;
  found.computeFromTridiagonal(diagonal / scale, beside / scale, Eigen::EigenvaluesOnly);
  if (found.info() != Eigen::Success) return {};
  return found.eigenvalues() * scale;
}

}  // namespace hetnn::ops
