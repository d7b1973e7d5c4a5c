// What operators on stacks of matrices share: the last two axes are rows and columns, computed by Eigen.
#pragma once

// Threads are shared among operators, not inside of them.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>
#include <cmath>
#include <initializer_list>
#include <span>

#include "hetnn/base/convert.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// Fails with `<op>_c1` unless the input stands for reals and has rank 2 at least.
inline void check_matrices(const Call& call, size_t input = 0) {
  const Type& x = call.input(input);
  if (is_float(x.dtype) && x.rank() >= 2) return;
  fail(call, text(call.op->name, "_c1"),
       text("'", call.op->inputs[input].name, "' must be real matrices, [...,M,N]; got ", to_string(x), ". Cast it."));
}

/// Fails with `<op>_c2` unless its matrices are square.
inline void check_square(const Call& call) {
  check_matrices(call);
  const Shape& x = call.input(0).shape;
  if (x[x.size() - 1] == x[x.size() - 2]) return;
  fail(call, text(call.op->name, "_c2"), text("its matrices must be square; got ", to_string(x), "."));
}

/// The leading axes of a stack of matrices, then `last`.
inline Shape stacked(const Shape& matrices, std::initializer_list<Dim> last) {
  Shape out(matrices.begin(), matrices.end() - 2);
  out.insert(out.end(), last);
  return out;
}

/// Number of matrices in a stack.
inline int64_t count_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t dim : shape.first(shape.size() - 2)) count *= dim;
  return count;
}

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <typename T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

template <typename T>
using Rows = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Number `which` of a stack of matrices, as T.
template <typename T>
Matrix<T> read(const View& stack, int64_t which) {
  const int64_t rows = stack.shape[stack.shape.size() - 2], columns = stack.shape.back();
  const std::byte* from = stack.data + which * rows * columns * dtype_bytes(stack.dtype);
  if (stack.dtype == DTypeOf<T>::value)
    return Eigen::Map<const Rows<T>>(reinterpret_cast<const T*>(from), rows, columns);
  Rows<T> values(rows, columns);
  ConvertElements(stack.dtype, DTypeOf<T>::value)(from, reinterpret_cast<std::byte*>(values.data()), values.size());
  return values;
}

/// Writes a matrix, or vector, as number `which` of a stack of such.
template <typename Dense>
void write(const Dense& dense, const Result& stack, int64_t which) {
  using T = typename Dense::Scalar;
  std::byte* to = stack.data + which * dense.size() * dtype_bytes(stack.dtype);
  if (stack.dtype == DTypeOf<T>::value) {
    Eigen::Map<Rows<T>>(reinterpret_cast<T*>(to), dense.rows(), dense.cols()) = dense;
    return;
  }
  const Rows<T> values = dense;
  ConvertElements(DTypeOf<T>::value, stack.dtype)(reinterpret_cast<const std::byte*>(values.data()), to, values.size());
}

/// A power of two near the largest element, through which a matrix is divided so that no squares in it overflow, nor
/// vanish beside others; 1 for one of zeros, or with NaN or infinity.
template <typename T>
T scale_of(const Matrix<T>& a) {
  const T largest = a.size() > 0 ? a.cwiseAbs().maxCoeff() : 0;
  return largest > 0 && std::isfinite(largest) ? std::ldexp(T{1}, std::ilogb(largest)) : 1;
}

/// Calls visit(T{}) with the type in which matrices of `dtype` are factored: double, or float for all narrower ones.
template <typename Visit>
void visit_precision(DType dtype, const Visit& visit) {
  if (dtype == DType::f64) return visit(double{});
  visit(float{});
}

}  // namespace hetnn::ops
