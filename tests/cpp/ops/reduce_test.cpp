// Reductions of every element type: exact in integers, rounded once in reals, and over nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "edge_values.h"
#include "expect_error.h"
#include "run_meaning.h"

namespace hetnn::ops {
namespace {

template <typename T>
Tensor edges() {
  const std::vector<T> values = edge_values<T>();
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DTypeOf<T>::value, {static_cast<int64_t>(values.size())}, &data);
  std::copy(values.begin(), values.end(), reinterpret_cast<T*>(data));
  return out;
}

TEST(Reduce, IntegersWrapAndKeepEveryBit) {
  for (const DType dtype : {DType::i8, DType::u8, DType::i16, DType::i32, DType::i64}) {
    visit_dtype(dtype, [](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        const std::vector<T> values = edge_values<T>();
        const auto n = static_cast<int64_t>(values.size());
        __extension__ __int128 sum = 0;
        for (const T v : values) sum += v;
        const auto only = [](T value) { return Tensor::scalar<T>(value); };
        EXPECT_EQ(run_meaning("sum", {edges<T>()}), only(static_cast<T>(sum)));
        EXPECT_EQ(run_meaning("mean", {edges<T>()}), only(static_cast<T>(sum / n)));
        EXPECT_EQ(run_meaning("prod", {edges<T>()}), only(0));
        EXPECT_EQ(run_meaning("reduce_max", {edges<T>()}), only(std::numeric_limits<T>::max()));
        EXPECT_EQ(run_meaning("reduce_min", {edges<T>()}), only(std::numeric_limits<T>::lowest()));
      }
    });
  }
  EXPECT_EQ(run_meaning("prod", {tensor_of<int8_t>({2}, {100, 3})}), Tensor::scalar<int8_t>(44));
  const int64_t large = (int64_t{1} << 53) + 1;
  EXPECT_EQ(run_meaning("sum", {tensor_of<int64_t>({3}, {large, 2, -1})}), Tensor::scalar<int64_t>(large + 1));
  EXPECT_EQ(run_meaning("prod", {tensor_of<int64_t>({2}, {large, 3})}), Tensor::scalar<int64_t>(3 * large));
  EXPECT_EQ(run_meaning("reduce_max", {tensor_of<int64_t>({2}, {large - 1, large})}), Tensor::scalar<int64_t>(large));
  EXPECT_EQ(run_meaning("mean", {tensor_of<int32_t>({2}, {-3, -4})}), Tensor::scalar<int32_t>(-3));
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(run_meaning("mean", {tensor_of<int64_t>({2}, {most, most})}), Tensor::scalar<int64_t>(most));
}

template <typename T>
float sum_of_ones(int64_t count) {
  std::byte* data = nullptr;
  const Tensor ones = Tensor::zeros(DTypeOf<T>::value, {count}, &data);
  std::fill_n(reinterpret_cast<T*>(data), count, static_cast<T>(1.0F));
  return static_cast<float>(run_meaning("sum", {ones}).values<T>()[0]);
}

TEST(Reduce, RealsAreRoundedOnce) {
  EXPECT_EQ(sum_of_ones<Float16>(4096), 4096);  // sums kept in f16 would end at 2048
  EXPECT_EQ(sum_of_ones<BFloat16>(1024), 1024);
  EXPECT_EQ(run_meaning("sum", {tensor_of<float>({3}, {1e8, 1, -1e8})}), Tensor::scalar<float>(1));
  EXPECT_EQ(run_meaning("mean", {tensor_of<Float16>({2}, {65504, 65504})}), tensor_of<Float16>({}, {65504}));
}

TEST(Reduce, NanInfinityAndZeroes) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    visit_dtype(dtype, [](auto zero) {
      using T = decltype(zero);
      if constexpr (kIsFloat<T>) {
        for (const char* op : {"sum", "prod", "mean", "reduce_max", "reduce_min"})
          EXPECT_TRUE(std::isnan(static_cast<double>(run_meaning(op, {edges<T>()}).template values<T>()[0]))) << op;
        const double inf = std::numeric_limits<double>::infinity();
        EXPECT_EQ(run_meaning("reduce_max", {tensor_of<T>({2}, {-inf, -inf})}), tensor_of<T>({}, {-inf}));
        EXPECT_EQ(run_meaning("reduce_min", {tensor_of<T>({2}, {inf, 1})}), tensor_of<T>({}, {1}));
        EXPECT_EQ(run_meaning("all", {edges<T>()}), tensor_of<bool>({}, {0}));
        EXPECT_EQ(run_meaning("any", {tensor_of<T>({2}, {0, -0.0})}), tensor_of<bool>({}, {0}));
        EXPECT_EQ(run_meaning("any", {tensor_of<T>({2}, {0, std::nan("")})}), tensor_of<bool>({}, {1}));
      }
    });
  }
}

TEST(Reduce, NothingGivesTheIdentityAndHasNoExtreme) {
  const Tensor none = Tensor::zeros(DType::i32, {2, 0}), real = Tensor::zeros(DType::f32, {2, 0});
  const Attrs rows = {{"axes", dims({1})}};
  EXPECT_EQ(run_meaning("sum", {none}, rows), tensor_of<int32_t>({2}, {0, 0}));
  EXPECT_EQ(run_meaning("prod", {none}, rows), tensor_of<int32_t>({2}, {1, 1}));
  EXPECT_EQ(run_meaning("all", {none}, rows), tensor_of<bool>({2}, {1, 1}));
  EXPECT_EQ(run_meaning("any", {none}, rows), tensor_of<bool>({2}, {0, 0}));
  EXPECT_TRUE(std::isnan(run_meaning("mean", {real}, rows).values<float>()[0]));
  EXPECT_ERROR(run_meaning("mean", {none}, rows), InvalidModel, "mean 'y'", "the mean of no integers", "i32[2,0]");
  EXPECT_ERROR(run_meaning("reduce_max", {real}, rows), InvalidModel, "reduce_max 'y'", "no elements have no extreme",
               "f32[2,0] and axes [1]", "(reduce_max_c1)");
  EXPECT_ERROR(run_meaning("reduce_min", {none}), InvalidModel, "no elements have no extreme", "(reduce_min_c1)");
  EXPECT_EQ(run_meaning("reduce_max", {none}, {{"axes", dims({0})}}).elems(), 0);
}

TEST(Reduce, AxesMayBeAnyThatThereAre) {
  const Tensor x = tensor_of<int64_t>({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(run_meaning("sum", {x}, {{"axes", dims({1})}}), tensor_of<int64_t>({2, 2}, {9, 12, 27, 30}));
  EXPECT_EQ(run_meaning("sum", {x}, {{"axes", dims({-1, 0})}, {"keepdim", true}}),
            tensor_of<int64_t>({1, 3, 1}, {18, 26, 34}));
  const Tensor scalar = Tensor::scalar<int64_t>(5);
  for (const int64_t axis : {0, -1}) EXPECT_EQ(run_meaning("sum", {scalar}, {{"axes", dims({axis})}}), scalar);
  EXPECT_ERROR(run_meaning("sum", {scalar}, {{"axes", dims({1})}}), InvalidModel, "axis must be in [-1,1) for rank 0");
  EXPECT_ERROR(run_meaning("sum", {x}, {{"axes", dims({3})}}), InvalidModel, "axis must be in [-3,3)");
  EXPECT_ERROR(run_meaning("sum", {x}, {{"axes", dims({1, -2})}}), InvalidModel, "axes must differ");
}

}  // namespace
}  // namespace hetnn::ops
