// What operators on stacks of matrices share: the last two axes are rows and columns, computed in double.
#pragma once

#include <vector>

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

/// One matrix in double, row by row.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns), values_(static_cast<size_t>(rows * columns)) {}

  /// Number `which` of the stack.
  static Matrix read(const View& stack, int64_t which) {
    const size_t rank = stack.shape.size();
    Matrix out(stack.shape[rank - 2], stack.shape[rank - 1]);
    ConvertElements(stack.dtype, DType::f64)(stack.data + which * out.bytes_of(stack.dtype),
                                             reinterpret_cast<std::byte*>(out.values_.data()), out.elems());
    return out;
  }
  /// Writes it as number `which` of a stack of matrices, or of vectors where it has one row.
  void write(const Result& stack, int64_t which) const {
    ConvertElements(DType::f64, stack.dtype)(reinterpret_cast<const std::byte*>(values_.data()),
                                             stack.data + which * bytes_of(stack.dtype), elems());
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  double& operator()(int64_t row, int64_t column) { return values_[static_cast<size_t>(row * columns_ + column)]; }
  double operator()(int64_t row, int64_t column) const { return values_[static_cast<size_t>(row * columns_ + column)]; }

 private:
  int64_t elems() const { return rows_ * columns_; }
  int64_t bytes_of(DType dtype) const { return elems() * dtype_bytes(dtype); }

  int64_t rows_, columns_;
  std::vector<double> values_;
};

/// Number of matrices in a stack.
inline int64_t count_of(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t dim : shape.first(shape.size() - 2)) count *= dim;
  return count;
}

}  // namespace hetnn::ops
