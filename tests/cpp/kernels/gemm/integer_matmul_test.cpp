// Products of two integer matrices, bit for bit.
#include "../integer_cases.h"

namespace hetnn::kernels::testing {
namespace {

struct Product {
  int64_t batch = 1, m = 1, k = 1, n = 1;
  bool transpose_a = false, transpose_b = false, one_b = false;
};

void check_matmul(const Product& p, int a_zero, int b_zero) {
  const Integers integers{.x_scale = 0.02, .y_scale = 0.4, .x_zero = a_zero, .y_zero = 11, .weight_scales = {0.03}};
  const int64_t b_batch = p.one_b ? 1 : p.batch;
  const std::vector<double> a = random_integers(p.batch * p.m * p.k, 1), b = random_integers(b_batch * p.k * p.n, 2);
  std::vector<double> expected;
  for (int64_t i = 0; i < p.batch; ++i)
    for (int64_t r = 0; r < p.m; ++r)
      for (int64_t c = 0; c < p.n; ++c) {
        int64_t sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const int64_t left = i * p.m * p.k + (p.transpose_a ? k * p.m + r : r * p.k + k);
          const int64_t right = (p.one_b ? 0 : i) * p.k * p.n + (p.transpose_b ? c * p.k + k : k * p.n + c);
          sum += (static_cast<int64_t>(a[static_cast<size_t>(left)]) - a_zero) *
                 (static_cast<int64_t>(b[static_cast<size_t>(right)]) - b_zero);
        }
        expected.push_back(integers.result(sum, 0));
      }
  Params params{{"transpose_a", int64_t{p.transpose_a}}, {"transpose_b", int64_t{p.transpose_b}}};
  for (const auto& [name, scale, zero] : {std::tuple("a", 0.02, a_zero), {"b", 0.03, b_zero}, {"y", 0.4, 11}}) {
    params.set(text(name, ".scales"), std::vector<double>{scale});
    params.set(text(name, ".zeros"), std::vector<int64_t>{zero});
  }
  const auto shape = [](int64_t batch, int64_t rows, int64_t cols, bool turned) {
    return std::vector<int64_t>{batch, turned ? cols : rows, turned ? rows : cols};
  };
  check_kernel("matmul_i8",
               {plain(shape(p.batch, p.m, p.k, p.transpose_a), a, DType::i8),
                plain(shape(b_batch, p.k, p.n, p.transpose_b), b, DType::i8)},
               {TensorView::plain(DType::i8, shape(p.batch, p.m, p.n, false))}, params, {expected}, 0,
               text("matmul of ", p.batch, " times ", p.m, "x", p.k, "x", p.n));
}

TEST(IntegerMatmul, ShapesSidesAndZeroPoints) {
  for (const int a_zero : {-128, 3})
    for (const int b_zero : {0, 127}) {
      check_matmul({.batch = 3, .m = 17, .k = 30, .n = 35}, a_zero, b_zero);
      check_matmul({.batch = 1, .m = 40, .k = 33, .n = 50, .transpose_a = true}, a_zero, b_zero);
      check_matmul({.batch = 12, .m = 5, .k = 4, .n = 16, .transpose_b = true}, a_zero, b_zero);
      check_matmul({.batch = 2, .m = 1, .k = 64, .n = 3, .one_b = true}, a_zero, b_zero);
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace hetnn::kernels::testing
