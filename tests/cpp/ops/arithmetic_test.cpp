// Convolutions, products, norms, pools and quantization against loops written the other way round or worked by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "edge_values.h"
#include "expect_error.h"
#include "run_meaning.h"

namespace hetnn::ops {
namespace {

const double kInf = std::numeric_limits<double>::infinity();

// Whole numbers from -4 to 4, so that sums of products are exact in every type.
template <typename T>
Tensor whole_numbers(const std::vector<int64_t>& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DTypeOf<T>::value, shape, &data);
  for (int64_t k = 0; k < out.elems(); ++k)
    reinterpret_cast<T*>(data)[k] = static_cast<T>(static_cast<float>(static_cast<int>(random() % 9) - 4));
  return out;
}

template <typename T>
std::vector<double> numbers(const Tensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

// Longer than the blocks in which elements are converted, along both axes of a broadcast and in either order of memory.
template <typename T>
void expect_sums_of(int64_t rows, int64_t columns) {
  const Tensor a = whole_numbers<T>({rows, 1}, 1), b = whole_numbers<T>({1, columns}, 2);
  const Tensor y = run_meaning("add", {a, b});
  ASSERT_EQ(y.shape(), (std::vector<int64_t>{rows, columns}));
  const auto av = a.values<T>(), bv = b.values<T>(), yv = y.values<T>();
  for (int64_t k = 0; k < y.elems(); ++k) {
    const auto row = static_cast<size_t>(k / columns), column = static_cast<size_t>(k % columns);
    const auto sum = static_cast<T>(static_cast<double>(av[row]) + static_cast<double>(bv[column]));
    ASSERT_EQ(static_cast<double>(yv[static_cast<size_t>(k)]), static_cast<double>(sum)) << k;
  }
}

TEST(Blocks, HoldElementsOfEveryTypeAndPlace) {
  expect_sums_of<float>(3, 1300);
  expect_sums_of<Float16>(3, 1300);
  expect_sums_of<int8_t>(1300, 3);
  expect_sums_of<int32_t>(1, 513);
  expect_sums_of<int64_t>(513, 1);
}

TEST(Blocks, IntegersHaveTheirOwnRange) {
  const Tensor x = tensor_of<int8_t>({4}, {-128, -1, 5, 127});
  EXPECT_EQ(run_meaning("clamp", {x}, {{"min", -300.0}, {"max", 300.0}}), x);
  EXPECT_EQ(run_meaning("neg", {x}), tensor_of<int8_t>({4}, {-128, 1, -5, -127}));
  EXPECT_EQ(run_meaning("div", {x, tensor_of<int8_t>({1}, {-1})}), tensor_of<int8_t>({4}, {-128, 1, -5, -127}));
  EXPECT_EQ(run_meaning("shift_left", {x, tensor_of<int8_t>({4}, {1, 7, 8, 9})}),
            tensor_of<int8_t>({4}, {0, -128, 0, 0}));
  EXPECT_EQ(run_meaning("shift_right", {tensor_of<uint8_t>({2}, {255, 255}), tensor_of<uint8_t>({2}, {4, 200})}),
            tensor_of<uint8_t>({2}, {15, 0}));
  EXPECT_EQ(run_meaning("sub", {tensor_of<uint32_t>({1}, {1}), tensor_of<uint32_t>({1}, {2})}),
            tensor_of<uint32_t>({1}, {4294967295}));
  EXPECT_EQ(run_meaning("bitwise_not", {tensor_of<uint16_t>({2}, {0, 65535})}), tensor_of<uint16_t>({2}, {65535, 0}));
}

TEST(Products, IntegersWrapAndKeepEveryBit) {
  EXPECT_EQ(run_meaning("matmul", {tensor_of<int8_t>({1, 2}, {127, 127}), tensor_of<int8_t>({2, 1}, {127, 127})}),
            tensor_of<int8_t>({1, 1}, {2}));
  const int32_t least = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(
      run_meaning("linear", {tensor_of<int32_t>({1, 1}, {least}), tensor_of<int32_t>({1, 1}, {-1}), std::nullopt}),
      tensor_of<int32_t>({1, 1}, {least}));
  const int64_t large = (int64_t{1} << 53) + 1;
  EXPECT_EQ(run_meaning("linear", {tensor_of<int64_t>({1, 1}, {large}), tensor_of<int64_t>({1, 1}, {3}),
                                   tensor_of<int64_t>({1}, {-1})}),
            tensor_of<int64_t>({1, 1}, {3 * large - 1}));
  EXPECT_EQ(run_meaning("conv2d", {tensor_of<int64_t>({1, 1, 1, 1}, {large}), tensor_of<int64_t>({1, 1, 1, 1}, {-5})}),
            tensor_of<int64_t>({1, 1, 1, 1}, {-5 * large}));
}

TEST(Products, NarrowRealsAreRoundedOnce) {
  EXPECT_EQ(run_meaning("matmul", {tensor_of<Float16>({1, 3}, {2048, 1, 1}), tensor_of<Float16>({3, 1}, {1, 1, 1})}),
            tensor_of<Float16>({1, 1}, {2050}));
  EXPECT_EQ(run_meaning("linear", {tensor_of<BFloat16>({1, 3}, {256, 1, 1}), tensor_of<BFloat16>({1, 3}, {1, 1, 1}),
                                   std::nullopt}),
            tensor_of<BFloat16>({1, 1}, {258}));
  EXPECT_EQ(run_meaning("matmul", {tensor_of<float>({1, 3}, {1e20, 1, -1e20}), tensor_of<float>({3, 1}, {1, 0.5, 1})}),
            tensor_of<float>({1, 1}, {0}));
  EXPECT_TRUE(std::isnan(
      run_meaning("matmul", {tensor_of<float>({1, 1}, {kInf}), tensor_of<float>({1, 1}, {0})}).values<float>()[0]));
}

TEST(Products, MatmulBroadcastsAndLinearIsItsTranspose) {
  for (const int64_t k : {0, 1, 9}) {
    const Tensor a = whole_numbers<double>({2, 1, 5, k}, 1), b = whole_numbers<double>({3, k, 11}, 2);
    const Tensor y = run_meaning("matmul", {a, b});
    ASSERT_EQ(y.shape(), (std::vector<int64_t>{2, 3, 5, 11}));
    const auto av = numbers<double>(a), bv = numbers<double>(b), yv = numbers<double>(y);
    for (int64_t at = 0; at < y.elems(); ++at) {
      const int64_t j = at % 11, i = at / 11 % 5, batch = at / 55;
      double sum = 0;
      for (int64_t c = k; c-- > 0;)
        sum += av[static_cast<size_t>((batch / 3 * 5 + i) * k + c)] *
               bv[static_cast<size_t>((batch % 3 * k + c) * 11 + j)];
      ASSERT_EQ(yv[static_cast<size_t>(at)], sum) << at;
    }
    const Tensor w = whole_numbers<double>({13, k}, 3), x = whole_numbers<double>({4, k}, 4);
    const Tensor transposed = run_meaning("permute", {w}, {{"perm", dims({1, 0})}});
    EXPECT_EQ(run_meaning("linear", {x, w, std::nullopt}), run_meaning("matmul", {x, transposed}));
  }
}

struct Convolution {
  std::vector<int64_t> x, weight;
  std::vector<int64_t> stride = {1, 1}, pad = {0, 0, 0, 0}, dilation = {1, 1}, extra = {0, 0};
  int64_t groups = 1;

  Attrs attrs(bool transposed) const {
    const auto list = [](const std::vector<int64_t>& of) { return std::vector<Dim>(of.begin(), of.end()); };
    Attrs out = {
        {"stride", list(stride)}, {"padding", list(pad)}, {"dilation", list(dilation)}, {"groups", Dim(groups)}};
    if (transposed) out.emplace("output_padding", list(extra));
    return out;
  }
};

// Every input adds to the outputs that it reaches.
template <typename T>
void expect_convolution(const Convolution& c) {
  const Tensor x = whole_numbers<T>(c.x, 1), w = whole_numbers<T>(c.weight, 2), b = whole_numbers<T>({c.weight[0]}, 3);
  const Tensor y = run_meaning("conv2d", {x, w, b}, c.attrs(false));
  const auto xv = numbers<T>(x), wv = numbers<T>(w), bv = numbers<T>(b);
  const std::vector<int64_t>& out = y.shape();
  std::vector<double> expected(static_cast<size_t>(y.elems()));
  for (size_t k = 0; k < expected.size(); ++k)
    expected[k] = bv[k / static_cast<size_t>(out[2] * out[3]) % static_cast<size_t>(out[1])];
  const int64_t filters = c.weight[0], channels = c.weight[1], kh = c.weight[2], kw = c.weight[3];
  for (int64_t n = 0; n < c.x[0]; ++n)
    for (int64_t m = 0; m < filters; ++m)
      for (int64_t ch = 0; ch < channels; ++ch)
        for (int64_t i = 0; i < c.x[2]; ++i)
          for (int64_t j = 0; j < c.x[3]; ++j)
            for (int64_t r = 0; r < kh; ++r)
              for (int64_t s = 0; s < kw; ++s) {
                const int64_t row = i + c.pad[0] - r * c.dilation[0], column = j + c.pad[1] - s * c.dilation[1];
                if (row < 0 || column < 0 || row % c.stride[0] != 0 || column % c.stride[1] != 0) continue;
                const int64_t oi = row / c.stride[0], oj = column / c.stride[1];
                if (oi >= out[2] || oj >= out[3]) continue;
                const int64_t channel = m / (filters / c.groups) * channels + ch;
                expected[static_cast<size_t>(((n * filters + m) * out[2] + oi) * out[3] + oj)] +=
                    xv[static_cast<size_t>(((n * c.x[1] + channel) * c.x[2] + i) * c.x[3] + j)] *
                    wv[static_cast<size_t>(((m * channels + ch) * kh + r) * kw + s)];
              }
  EXPECT_EQ(numbers<T>(y), expected) << dtype_name(x.dtype());
}

TEST(Convolution, OfEveryTypeIsTheSumOfItsTaps) {
  for (const Convolution& c :
       {Convolution{.x = {2, 3, 6, 5}, .weight = {4, 3, 3, 2}},
        Convolution{.x = {1, 4, 9, 8}, .weight = {6, 2, 3, 3}, .stride = {2, 3}, .pad = {1, 2, 0, 3}, .groups = 2},
        Convolution{.x = {1, 3, 7, 9}, .weight = {3, 1, 2, 3}, .pad = {2, 2, 2, 2}, .dilation = {3, 2}, .groups = 3}}) {
    expect_convolution<float>(c);
    expect_convolution<double>(c);
    expect_convolution<Float16>(c);
    expect_convolution<BFloat16>(c);
    expect_convolution<int16_t>(c);
    expect_convolution<int32_t>(c);
    expect_convolution<int64_t>(c);
  }
}

// Every input adds to the outputs that it reaches, here by definition.
template <typename T>
void expect_transposed(const Convolution& c) {
  const int64_t per_group = c.weight[1], filters = per_group * c.groups, kh = c.weight[2], kw = c.weight[3];
  const Tensor x = whole_numbers<T>(c.x, 1), w = whole_numbers<T>(c.weight, 2), b = whole_numbers<T>({filters}, 3);
  const Tensor y = run_meaning("conv_transpose2d", {x, w, b}, c.attrs(true));
  const auto xv = numbers<T>(x), wv = numbers<T>(w), bv = numbers<T>(b);
  const std::vector<int64_t>& out = y.shape();
  std::vector<double> expected(static_cast<size_t>(y.elems()));
  for (size_t k = 0; k < expected.size(); ++k)
    expected[k] = bv[k / static_cast<size_t>(out[2] * out[3]) % static_cast<size_t>(out[1])];
  for (int64_t n = 0; n < c.x[0]; ++n)
    for (int64_t ch = 0; ch < c.x[1]; ++ch)
      for (int64_t m = 0; m < per_group; ++m)
        for (int64_t i = 0; i < c.x[2]; ++i)
          for (int64_t j = 0; j < c.x[3]; ++j)
            for (int64_t r = 0; r < kh; ++r)
              for (int64_t s = 0; s < kw; ++s) {
                const int64_t oi = i * c.stride[0] + r * c.dilation[0] - c.pad[0],
                              oj = j * c.stride[1] + s * c.dilation[1] - c.pad[1];
                if (oi < 0 || oj < 0 || oi >= out[2] || oj >= out[3]) continue;
                const int64_t filter = ch / (c.x[1] / c.groups) * per_group + m;
                expected[static_cast<size_t>(((n * filters + filter) * out[2] + oi) * out[3] + oj)] +=
                    xv[static_cast<size_t>(((n * c.x[1] + ch) * c.x[2] + i) * c.x[3] + j)] *
                    wv[static_cast<size_t>(((ch * per_group + m) * kh + r) * kw + s)];
              }
  EXPECT_EQ(numbers<T>(y), expected) << dtype_name(x.dtype());
}

TEST(Convolution, TransposedOfEveryTypeIsTheSumOfItsTaps) {
  for (const Convolution& c :
       {Convolution{.x = {2, 3, 4, 5}, .weight = {3, 4, 2, 3}},
        Convolution{.x = {1, 4, 4, 5},
        .weight = {4, 3, 3, 4},
        .stride = {2, 3},
        .pad = {1, 1, 1, 1},
        .extra = {1, 2},
        .groups = 2},
        Convolution{
            .x = {1, 2, 6, 5}, .weight = {2, 3, 3, 2}, .stride = {1, 2}, .pad = {1, 0, 2, 1}, .dilation = {2, 3}}}) {
    expect_transposed<float>(c);
    expect_transposed<Float16>(c);
    expect_transposed<int32_t>(c);
    expect_transposed<int64_t>(c);
  }
}

TEST(Convolution, ScaledIsThePlainOneOfAProduct) {
  const Tensor x = whole_numbers<float>({2, 5, 3, 4}, 1), w = whole_numbers<float>({7, 5, 1, 1}, 2),
               gate = whole_numbers<float>({2, 5, 1, 1}, 3), b = whole_numbers<float>({7}, 4);
  const Tensor product = run_meaning("mul", {x, gate});
  EXPECT_EQ(run_meaning("scaled_conv2d", {x, w, gate, b}), run_meaning("conv2d", {product, w, b}));
  EXPECT_EQ(run_meaning("scaled_conv2d", {x, w, gate, std::nullopt}), run_meaning("conv2d", {product, w}));
  const Tensor scale = whole_numbers<float>({1, 5, 1, 1}, 5), shift = whole_numbers<float>({1, 5, 1, 1}, 6);
  const Tensor normed = run_meaning("add", {run_meaning("mul", {x, scale}), shift});
  EXPECT_EQ(run_meaning("scaled_conv2d", {x, w, scale, b, shift}), run_meaning("conv2d", {normed, w, b}));
  EXPECT_EQ(run_meaning("scaled_conv2d", {x, w, scale, std::nullopt, shift}, {{"relu", true}}),
            run_meaning("conv2d", {run_meaning("relu", {normed}), w}));
}

TEST(Convolution, PointwiseAndDepthwiseAreTheTwoOneAfterTheOther) {
  const Tensor x = whole_numbers<float>({2, 5, 6, 4}, 1), p = whole_numbers<float>({7, 5, 1, 1}, 2),
               d = whole_numbers<float>({7, 1, 3, 2}, 3), a = whole_numbers<float>({7}, 4),
               b = whole_numbers<float>({7}, 5);
  const ops::Attrs window = {{"stride", std::vector<Dim>{2, 1}}, {"padding", std::vector<Dim>{1, 0, 2, 1}}};
  ops::Attrs grouped = window;
  grouped.emplace("groups", Dim(7));
  const auto both = [&](const char* function, const ops::Attrs& of, const std::vector<double>& values) {
    ops::Attrs attrs = window;
    attrs.emplace("function", std::string(function));
    attrs.emplace("values", values);
    const Tensor between = run_meaning(function, {run_meaning("conv2d", {x, p, a})}, of);
    EXPECT_EQ(run_meaning("pointwise_depthwise_conv2d", {x, p, d, a, b}, attrs),
              run_meaning("conv2d", {between, d, b}, grouped))
        << function;
  };
  both("relu", {}, {});
  both("silu", {}, {});
  both("hardswish", {}, {});
  both("clamp", {{"min", 0.0}, {"max", 6.0}}, {0, 6});
  EXPECT_EQ(run_meaning("pointwise_depthwise_conv2d", {x, p, d}, window),
            run_meaning("conv2d", {run_meaning("conv2d", {x, p}), d}, grouped));
}

template <typename T>
void expect_softmax(double relative, double absolute) {
  for (const int64_t axis : {0, 1, 2}) {
    const Tensor x = whole_numbers<T>({3, 50, 37}, 1);
    const auto xv = numbers<T>(x);
    const int64_t n = x.shape()[static_cast<size_t>(axis)], inner = axis == 0 ? 50 * 37 : axis == 1 ? 37 : 1;
    for (const bool log : {false, true}) {
      const auto found = numbers<T>(run_meaning(log ? "log_softmax" : "softmax", {x}, {{"axis", Dim(axis)}}));
      for (int64_t at = 0; at < x.elems(); ++at) {
        const int64_t first = at / (n * inner) * n * inner + at % inner;
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) sum += std::exp(xv[static_cast<size_t>(first + k * inner)]);
        const double value = xv[static_cast<size_t>(at)],
                     expected = log ? value - std::log(sum) : std::exp(value) / sum;
        ASSERT_NEAR(found[static_cast<size_t>(at)], expected, relative * std::abs(expected) + absolute)
            << axis << " " << at;
      }
    }
  }
}

TEST(Norm, SoftmaxOfEveryRealTypeAlongEveryAxis) {
  expect_softmax<float>(6e-8, 0);
  expect_softmax<double>(1e-15, 1e-15);
  expect_softmax<Float16>(5e-4, 3e-8);  // half a step of the least
  expect_softmax<BFloat16>(4e-3, 0);
}

TEST(Norm, SoftmaxKeepsToItsFormulaAtTheEdges) {
  const auto softmax = [](const Tensor& x) { return numbers<float>(run_meaning("softmax", {x})); };
  const double nan = std::nan("");
  EXPECT_EQ(softmax(tensor_of<float>({3}, {-kInf, 0, -1e30})), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(softmax(tensor_of<float>({2}, {3.4e38, 3.4e38})), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(softmax(tensor_of<float>({2}, {1e-45, -0.0})), (std::vector<double>{0.5, 0.5}));
  EXPECT_THAT(softmax(tensor_of<float>({2}, {nan, 0})), testing::Each(testing::IsNan()));
  EXPECT_THAT(softmax(tensor_of<float>({2}, {0, nan})), testing::Each(testing::IsNan()));
  EXPECT_THAT(softmax(tensor_of<float>({2}, {kInf, 0})), testing::Each(testing::IsNan()));
  EXPECT_THAT(softmax(tensor_of<float>({2}, {-kInf, -kInf})), testing::Each(testing::IsNan()));
  EXPECT_EQ(softmax(Tensor::scalar<float>(3)), (std::vector<double>{1}));
  EXPECT_EQ(softmax(Tensor::zeros(DType::f32, {0, 3})), (std::vector<double>{}));
  EXPECT_EQ(softmax(Tensor::zeros(DType::f32, {3, 0})), (std::vector<double>{}));
  EXPECT_EQ(numbers<float>(run_meaning("log_softmax", {tensor_of<float>({2}, {-kInf, 7})})),
            (std::vector<double>{-kInf, 0}));
  EXPECT_ERROR(run_meaning("softmax", {tensor_of<int32_t>({1}, {1})}), InvalidModel, "must be real; got i32");
}

TEST(Norm, LayerAndBatchNormByHand) {
  const double unit = 1 / std::sqrt(1 + 1e-5);
  const auto layer =
      numbers<float>(run_meaning("layer_norm", {tensor_of<float>({2, 2}, {1, 3, 7, 5}), tensor_of<float>({2}, {2, 1}),
                                                tensor_of<float>({2}, {0, 1})}));
  EXPECT_THAT(layer, testing::Pointwise(testing::FloatNear(1e-6F), {-2 * unit, unit + 1, 2 * unit, 1 - unit}));
  const auto zero = run_meaning("layer_norm", {tensor_of<float>({1, 1}, {-0.0}), std::nullopt, std::nullopt});
  EXPECT_EQ(zero.values<float>()[0], 0.0F);
  EXPECT_TRUE(std::isnan(run_meaning("layer_norm", {tensor_of<float>({2}, {kInf, 0})}).values<float>()[1]));
  const auto batch = run_meaning("batch_norm",
                                 {tensor_of<float>({1, 2, 2}, {1, 2, 3, 4}), tensor_of<float>({2}, {2, 3}),
                                  std::nullopt, tensor_of<float>({2}, {1, 2}), tensor_of<float>({2}, {4, 0.25})},
                                 {{"eps", 0.0}});
  EXPECT_EQ(batch, tensor_of<float>({1, 2, 2}, {0, 1, 6, 12}));
}

TEST(Attention, IsTheSoftmaxOfTwoProducts) {
  const int64_t rows = 70, keys = 19;
  const Tensor q = whole_numbers<double>({2, 2, rows, 5}, 1), k = whole_numbers<double>({2, 2, keys, 5}, 2),
               v = whole_numbers<double>({2, 2, keys, 3}, 3), mask = whole_numbers<double>({2, 1, 1, keys}, 4);
  const Tensor scores = run_meaning("matmul", {q, run_meaning("permute", {k}, {{"perm", dims({0, 1, 3, 2})}})});
  const Tensor scaled = run_meaning("add", {run_meaning("mul", {scores, Tensor::scalar<double>(0.5)}), mask});
  const auto expected = numbers<double>(run_meaning("matmul", {run_meaning("softmax", {scaled}), v}));
  const auto found = numbers<double>(run_meaning("scaled_dot_product_attention", {q, k, v, mask}, {{"scale", 0.5}}));
  EXPECT_THAT(found, testing::Pointwise(testing::DoubleNear(1e-13), expected));
}

TEST(Attention, MasksRowsAndKeepsNan) {
  const Tensor q = tensor_of<float>({1, 1, 2, 1}, {0, 0}), k = tensor_of<float>({1, 1, 2, 1}, {1, 2}),
               v = tensor_of<float>({1, 1, 2, 1}, {4, 8});
  const auto attended = [&](const std::optional<Tensor>& mask, Attrs attrs = {}) {
    return numbers<float>(run_meaning("scaled_dot_product_attention", {q, k, v, mask}, std::move(attrs)));
  };
  EXPECT_EQ(attended(std::nullopt), (std::vector<double>{6, 6}));
  EXPECT_EQ(attended(std::nullopt, {{"is_causal", true}}), (std::vector<double>{4, 6}));
  EXPECT_EQ(attended(tensor_of<bool>({1, 1, 2, 2}, {0, 0, 0, 1})), (std::vector<double>{0, 8}));
  EXPECT_EQ(attended(tensor_of<float>({2, 2}, {-kInf, 0, 0, -kInf})), (std::vector<double>{8, 4}));
  EXPECT_THAT(attended(tensor_of<float>({2}, {0, std::nan("")})), testing::Each(testing::IsNan()));
}

TEST(Pool, EveryTypeByHand) {
  const Attrs two = {{"kernel", dims({2, 2})}};
  for (const DType dtype : kComputedDTypes) {
    if (dtype == DType::boolean) continue;
    visit_dtype(dtype, [&](auto zero) {
      using T = decltype(zero);
      const Tensor x = tensor_of<T>({1, 1, 2, 4}, {1, 2, 3, 7, 3, 2, 1, 5});
      EXPECT_EQ(run_meaning("max_pool2d", {x}, two), tensor_of<T>({1, 1, 1, 2}, {3, 7}));
      EXPECT_EQ(run_meaning("avg_pool2d", {x}, two), tensor_of<T>({1, 1, 1, 2}, {2, 4}));
      EXPECT_EQ(run_meaning("adaptive_avg_pool2d", {x}, {{"output_size", dims({1, 1})}}),
                tensor_of<T>({1, 1, 1, 1}, {3}));
    });
  }
  const int64_t large = (int64_t{1} << 53) + 1, least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(run_meaning("max_pool2d", {tensor_of<int64_t>({1, 1, 2, 2}, {large, large - 1, least, 0})}, two),
            tensor_of<int64_t>({1, 1, 1, 1}, {large}));
  EXPECT_EQ(run_meaning("avg_pool2d", {tensor_of<int64_t>({1, 1, 2, 2}, {least, least, least, least})}, two),
            tensor_of<int64_t>({1, 1, 1, 1}, {least}));
  const Tensor nan = run_meaning("max_pool2d", {tensor_of<float>({1, 1, 2, 2}, {1, std::nan(""), kInf, 0})}, two);
  EXPECT_TRUE(std::isnan(nan.values<float>()[0]));
  EXPECT_EQ(run_meaning("max_pool2d", {tensor_of<float>({1, 1, 2, 2}, {-kInf, -kInf, -kInf, -kInf})}, two),
            tensor_of<float>({1, 1, 1, 1}, {-kInf}));
}

TEST(Pool, PaddingCountsAsTheAttributesSay) {
  const Tensor x = tensor_of<float>({1, 1, 1, 3}, {6, 3, 12});
  const auto pooled = [&](Attrs attrs) {
    attrs.insert({{"kernel", dims({1, 3})}, {"stride", dims({2, 2})}, {"padding", dims({0, 1})}});
    return numbers<float>(run_meaning("avg_pool2d", {x}, std::move(attrs)));
  };
  EXPECT_EQ(pooled({}), (std::vector<double>{3, 5}));
  EXPECT_EQ(pooled({{"count_include_pad", false}}), (std::vector<double>{4.5, 7.5}));
  EXPECT_EQ(pooled({{"divisor_override", Dim(2)}}), (std::vector<double>{4.5, 7.5}));
  EXPECT_ERROR(
      run_meaning("adaptive_avg_pool2d", {Tensor::zeros(DType::i32, {1, 1, 0, 2})}, {{"output_size", dims({1, 1})}}),
      InvalidModel, "the mean of no integers", "mean_c1");
}

TEST(Quant, RoundsToEvenAndSaturates) {
  const Tensor x = tensor_of<float>({8}, {0.25, 0.75, -0.25, 1e9, -kInf, kInf, std::nan(""), -0.0});
  EXPECT_EQ(run_meaning("quantize", {x}, {{"q_scale", std::vector<double>{0.5}}, {"q_zero", Dim(1)}}),
            tensor_of<int8_t>({8}, {1, 3, 1, 127, -128, 127, 1, 1}));
  std::vector<int8_t> table(256);
  for (int k = -128; k < 128; ++k) table[static_cast<size_t>(k + 128)] = static_cast<int8_t>(k == -128 ? 127 : -k);
  EXPECT_EQ(run_meaning("lookup", {tensor_of<int8_t>({4}, {-128, -1, 0, 127})},
                        {{"table", Tensor::of<int8_t>({256}, table)}}),
            tensor_of<int8_t>({4}, {127, 1, 0, -127}));
}

}  // namespace
}  // namespace hetnn::ops
