// The steps of dense.h by Eigen. Included once an instruction set, after HETNN_DENSE names the namespace.
#include <Eigen/Core>
#include <Eigen/LU>
#include <Eigen/SVD>

namespace hetnn::ops::HETNN_DENSE {

template <typename T>
using Square = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>>;

template <typename T>
void factor_lu(T* a, int64_t n, int64_t* order) {
  using Columns = Eigen::Ref<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>>;
  Square<T> square(a, n, n);
  Columns factors = square;
  const Eigen::PartialPivLU<Columns> lu(factors);
  for (int64_t row = 0; row < n; ++row) order[lu.permutationP().indices()[row]] = row;
}

template <typename T>
void solve_triangular(const T* a, int64_t n, T* x, int64_t columns, bool upper) {
  const Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>> factor(a, n, n);
  Square<T> sides(x, n, columns);
  if (upper) return factor.template triangularView<Eigen::Upper>().solveInPlace(sides);
  factor.template triangularView<Eigen::Lower>().solveInPlace(sides);
}

inline void bidiagonalize(const double* a, int64_t rows, int64_t columns, double* diagonal, double* above) {
  using Matrix = Eigen::MatrixXd;
  const Eigen::internal::UpperBidiagonalization<Matrix> two(Eigen::Map<const Matrix>(a, rows, columns));
  auto diagonals = two.bidiagonal();
  Eigen::Map<Eigen::VectorXd>(diagonal, columns) = diagonals.diagonal<0>();
  Eigen::Map<Eigen::VectorXd>(above, columns - 1) = diagonals.diagonal<1>();
}

}  // namespace hetnn::ops::HETNN_DENSE
