// linear and matmul against their meanings.
#include "../kernel_runner.h"
#include "expect_error.h"
#include "hetnn/kernels/gemm/panels.h"

namespace hetnn::kernels::testing {
namespace {

TEST(Linear, MatchesItsMeaningOverOddSizes) {
  for (const int64_t m : {1, 2, 5, 7, 13, 29, 50})
    for (const int64_t n : {1, 3, 8, 15, 16, 17, 31, 33, 48, 70})
      for (const int64_t k : {1, 2, 7, 33}) {
        const Tensor x = random_plain({m, k}, 1), w = random_plain({n, k}, 2), b = random_plain({n}, 3);
        const auto expected = meaning("linear", {x, w, b});
        const TensorView y = TensorView::plain(DType::f32, std::vector<int64_t>{m, n});
        check_kernel("linear", {x, w, b}, {y}, {{"bias", int64_t{1}}}, {expected}, 1e-6,
                     "linear " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
        if (HasFatalFailure()) return;
      }
}

TEST(Linear, LargeSizesSplitOverThreadsWithoutChangingBits) {
  const Tensor x = random_plain({3, 67, 300}, 1), w = random_plain({513, 300}, 2);
  const auto expected = meaning("linear", {x, w});
  check_kernel("linear", {x, w}, {TensorView::plain(DType::f32, std::vector<int64_t>{3, 67, 513})}, {}, {expected},
               2e-6, "linear large");
}

TEST(Linear, RowsThatCollideInTheFirstLevelAreReadFromCopies) {
  for (const int64_t k : {1024, 2048}) {
    for (const int64_t m : {1, 9, 30, 61}) {
      for (const int64_t n : {40, 130}) {
        const Tensor x = random_plain({m, k}, 1), w = random_plain({n, k}, 2), full = random_plain({m, n}, 3);
        auto expected = meaning("linear", {x, w});
        for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(0.0, expected[i] + full.values[i]);
        check_kernel("linear", {x, w, full}, {TensorView::plain(DType::f32, std::vector<int64_t>{m, n})}, {},
                     {expected}, 1e-5, "linear of colliding rows", {{"add", 2, {}}, {"relu", -1, {}}});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Linear, EpilogueAddsScalesAndActivates) {
  const int64_t m = 19, n = 37, k = 21;
  const Tensor x = random_plain({m, k}, 1), w = random_plain({n, k}, 2), b = random_plain({n}, 3);
  const Tensor full = random_plain({m, n}, 4), channel = random_plain({n}, 5), row = random_plain({m, 1}, 6);
  const TensorView y = TensorView::plain(DType::f32, std::vector<int64_t>{m, n});
  auto expected = meaning("linear", {x, w, b});
  for (size_t i = 0; i < expected.size(); ++i) {
    double v = expected[i] + full.values[i];
    v = v * channel.values[i % n] + row.values[i / n];
    expected[i] = v > 0 ? v : 0.25 * v;
  }
  check_kernel("linear", {x, w, b, full, channel, row}, {y}, {{"bias", int64_t{1}}}, {expected}, 1e-6,
               "linear with steps", {{"add", 3, {}}, {"mul", 4, {}}, {"add", 5, {}}, {"leaky_relu", -1, {0.25}}});
}

TEST(Linear, LeadingAdditionAndClosingClampRunInRegisters) {
  const int64_t m = 9, n = 21, k = 5;
  const Tensor x = random_plain({m, k}, 1), w = random_plain({n, k}, 2), full = random_plain({m, n}, 4);
  auto expected = meaning("linear", {x, w});
  for (size_t i = 0; i < expected.size(); ++i)
    expected[i] = std::min(0.5, std::max(-0.25, expected[i] + full.values[i]));
  check_kernel("linear", {x, w, full}, {TensorView::plain(DType::f32, std::vector<int64_t>{m, n})}, {}, {expected},
               1e-6, "linear add clamp", {{"add", 2, {}}, {"clamp", -1, {-0.25, 0.5}}});
}

// Of any width, the last vector cut or whole, with the function's operand a column, a row, one element or all of them.
TEST(Linear, AFunctionRunsBetweenTheAdditionAndTheClamp) {
  const int64_t k = 6;
  for (const int64_t m : {1, 3, 15, 28, 30}) {
    for (const int64_t n : {1, 10, 16, 24, 40, 70}) {
      const Tensor x = random_plain({m, k}, 1), w = random_plain({n, k}, 2), full = random_plain({m, n}, 3);
      const auto sums = meaning("linear", {x, w});
      const std::vector<std::vector<int64_t>> shapes = {{m, n}, {n}, {m, 1}, {1}};
      for (const std::vector<int64_t>& shape : shapes) {
        const Tensor factor = random_plain(shape, 4);
        std::vector<double> expected(sums.size());
        for (size_t i = 0; i < sums.size(); ++i) {
          const size_t row = i / static_cast<size_t>(n), col = i % static_cast<size_t>(n);
          const size_t at = shape.size() == 1 ? (shape[0] == n ? col : 0) : shape[1] == n ? i : row;
          expected[i] = std::clamp((sums[i] + full.values[i]) * factor.values[at], -0.5, 0.75);
        }
        check_kernel("linear", {x, w, full, factor}, {full.view}, {}, {expected}, 1e-6, "linear add mul clamp",
                     {{"add", 2, {}}, {"mul", 3, {}}, {"clamp", -1, {-0.5, 0.75}}});
        if (HasFatalFailure()) return;
      }
      std::vector<double> expected = sums;
      for (double& v : expected) v *= std::clamp(v / 6 + 0.5, 0.0, 1.0);
      check_kernel("linear", {x, w}, {full.view}, {}, {expected}, 1e-6, "linear hardswish", {{"hardswish", -1, {}}});
    }
  }
}

// Root of the summed squares of the difference over that of the reference.
double relative_difference(const std::vector<double>& found, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);
}

// Summed one by one, 5000 products are 1e-6 off.
TEST(Linear, LongSumsStayAccurate) {
  for (const int64_t m : {1, 9})
    for (const int64_t n : {32, 40}) {
      const int64_t k = 5000;
      const Tensor x = random_plain({m, k}, 1), w = random_plain({n, k}, 2);
      const auto expected = meaning("linear", {x, w});
      const TensorView y = TensorView::plain(DType::f32, std::vector<int64_t>{m, n});
      for (const std::string& isa : available_isas()) {
        restrict_isa(isa);
        EXPECT_LT(relative_difference(run_kernel("linear", {x, w}, {y}, {})[0], expected), 4e-7) << isa;
      }
    }
  restrict_isa("");
}

TEST(Linear, ColumnsOfEqualWeightsAreEqual) {
  for (const int64_t m : {1, 2, 7})
    for (const int64_t n : {5, 16, 40, 100, 1000}) {
      const int64_t k = 777;
      const Tensor x = random_plain({m, k}, 1);
      Tensor w = random_plain({n, k}, 2);
      for (int64_t i = k; i < n * k; ++i) w.values[static_cast<size_t>(i)] = w.values[static_cast<size_t>(i % k)];
      const TensorView y = TensorView::plain(DType::f32, std::vector<int64_t>{m, n});
      for (const std::string& isa : available_isas()) {
        restrict_isa(isa);
        const std::vector<double> found = run_kernel("linear", {x, w}, {y}, {})[0];
        for (size_t i = 0; i < found.size(); ++i)
          ASSERT_EQ(found[i], found[i / static_cast<size_t>(n) * static_cast<size_t>(n)])
              << m << "x" << n << " " << isa;
      }
    }
  restrict_isa("");
}

// What is added lies far above the products: it may cost one rounding of its own size, not one a product.
TEST(Linear, ALargeResidualAndBiasCostOneRoundingEach) {
  const int64_t m = 5, n = 20, k = 1000;
  const Tensor x = random_plain({m, k}, 1), w = random_plain({n, k}, 2);
  Tensor bias = random_plain({n}, 3), residual = random_plain({m, n}, 4);
  for (double& v : bias.values) v = static_cast<float>(1e3 * v);
  for (double& v : residual.values) v = static_cast<float>(1e4 * v);
  auto expected = meaning("linear", {x, w, bias});
  for (size_t i = 0; i < expected.size(); ++i) expected[i] += residual.values[i];
  const auto found = run_kernel("linear", {x, w, bias, residual}, {residual.view}, {{"bias", int64_t{1}}},
                                {.steps = {{"add", 3, {}}}})[0];
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 6e-8 * (std::abs(expected[i]) + 1e3) + 1e-5) << i;
}

TEST(Linear, NanPassesThroughRelu) {
  Tensor x = random_plain({3, 4}, 1);
  x.values[5] = std::nan("");
  const Tensor w = random_plain({6, 4}, 2);
  const auto y = run_kernel("linear", {x, w}, {TensorView::plain(DType::f32, std::vector<int64_t>{3, 6})}, {},
                            {.steps = {{"relu", -1, {}}}})[0];
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_FALSE(std::isnan(y[i]));
    EXPECT_TRUE(std::isnan(y[6 + i]));
  }
}

TEST(Linear, RefusesMismatchedSizes) {
  const Tensor x = random_plain({3, 4}, 1), w = random_plain({6, 5}, 2);
  EXPECT_ERROR(run_kernel("linear", {x, w}, {TensorView::plain(DType::f32, std::vector<int64_t>{3, 6})}, {}),
               InternalError, "x [3,4] plain, weight [6,5] packed");
}

// The meaning of matmul for operands whose last two axes are swapped where `ta` and `tb` say.
std::vector<double> matmul_meaning(const Tensor& a, const Tensor& b, bool ta, bool tb) {
  const auto straight = [](const Tensor& t, bool swapped) {
    const auto shape = t.view.shape();
    if (!swapped) return t;
    return plain({shape[0], shape[2], shape[1]}, meaning("permute", {t}, {{"perm", dims({0, 2, 1})}}));
  };
  return meaning("matmul", {straight(a, ta), straight(b, tb)});
}

TEST(PanelProduct, TakesNoMemoryByItsColumns) {
  const PanelProduct product({.rows = 1, .k = 4, .cols = int64_t{1} << 40}, EpiloguePlan{});
  EXPECT_LE(product.scratch_bytes_per_thread(), 1 << 20);
}

TEST(Matmul, MatchesItsMeaningInEveryOrientation) {
  for (const int64_t batch : {1, 2, 7})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const bool broadcast : {false, true})
          for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i32}) {
            const int64_t m = 11, n = 19, k = 6;
            const bool integer = is_integer(dtype);
            const auto make = [&](std::vector<int64_t> shape, unsigned seed) {
              Tensor t{TensorView::plain(dtype, shape), {}};
              t.values = random_values(t.view.elems(), seed, integer ? -9 : -1, integer ? 9 : 1);
              if (integer)
                for (double& v : t.values) v = std::trunc(v);
              return t;
            };
            const Tensor a = make(ta ? std::vector<int64_t>{batch, k, m} : std::vector<int64_t>{batch, m, k}, 1);
            const int64_t b_batch = broadcast ? 1 : batch;
            const Tensor b = make(tb ? std::vector<int64_t>{b_batch, n, k} : std::vector<int64_t>{b_batch, k, n}, 2);
            const auto expected = matmul_meaning(a, b, ta, tb);
            check_kernel("matmul", {a, b}, {TensorView::plain(dtype, std::vector<int64_t>{batch, m, n})},
                         {{"transpose_a", int64_t{ta}}, {"transpose_b", int64_t{tb}}}, {expected}, integer ? 0.0 : 1e-6,
                         "matmul");
            if (HasFatalFailure()) return;
          }
}

TEST(Matmul, LargeProductsAndEpiloguePerBatch) {
  const int64_t batch = 3, m = 45, n = 67, k = 64;
  const Tensor a = random_plain({batch, m, k}, 1), b = random_plain({batch, k, n}, 2),
               add = random_plain({batch, m, n}, 3), half = plain({1}, {0.5});
  auto expected = meaning("matmul", {a, b});
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(0.0, 0.5 * expected[i] + add.values[i]);
  check_kernel("matmul", {a, b, add, half}, {TensorView::plain(DType::f32, std::vector<int64_t>{batch, m, n})}, {},
               {expected}, 1e-6, "matmul with steps", {{"mul", 3, {}}, {"add", 2, {}}, {"relu", -1, {}}});
}

TEST(Matmul, VectorOperandsCountAsRowAndColumn) {
  const Tensor a = random_plain({5}, 1), b = random_plain({5}, 2);
  double expected = 0;
  for (size_t i = 0; i < 5; ++i) expected += a.values[i] * b.values[i];
  check_kernel("matmul", {a, b}, {TensorView::plain(DType::f32, {})}, {}, {{expected}}, 1e-6, "dot product");
}

}  // namespace
}  // namespace hetnn::kernels::testing
