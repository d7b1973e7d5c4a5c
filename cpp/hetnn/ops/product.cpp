// Matrix products in every type that is computed in.
#include "hetnn/ops/product.h"

#include "hetnn/base/visit_dtype.h"

namespace hetnn::ops {

template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, Matrix<T> a, Matrix<T> b, Matrix<T> bias, T* to) {
  using S = Sum<T>;
  multiply<S>(
      m, n, k, a, b,
      [=](int64_t i, int64_t j) {
        return bias.data == nullptr ? S(0) : static_cast<S>(bias.data[i * bias.row_step + j * bias.column_step]);
      },
      [=](int64_t i, int64_t j, S sum) { to[i * n + j] = static_cast<T>(sum); });
}

// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none
#define HETNN_MULTIPLY(T) template void multiply(int64_t, int64_t, int64_t, Matrix<T>, Matrix<T>, Matrix<T>, T*);
// NOLINTEND(bugprone-macro-parentheses)
HETNN_MULTIPLY(float)
HETNN_MULTIPLY(double)
HETNN_MULTIPLY(uint64_t)
HETNN_MULTIPLY(int64_t)
HETNN_MULTIPLY(bool)
#undef HETNN_MULTIPLY

}  // namespace hetnn::ops
