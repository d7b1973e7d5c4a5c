// Linear layers of integers, bit for bit.
#include "../integer_cases.h"
#include "expect_error.h"

namespace hetnn::kernels::testing {
namespace {

struct Layer {
  int64_t rows = 1, k = 1, filters = 1;
  bool bias = true;
  Integers integers = {};
  std::vector<Step> steps = {};
  unsigned seed = 1;
  bool extreme = false;  // every x is -128 or 127, every weight -128
};

void check_linear(const Layer& layer) {
  const auto [rows, k, filters, has_bias, integers, steps, seed, extreme] = layer;
  std::vector<double> x = random_integers(rows * k, seed), w = random_integers(filters * k, seed + 1);
  if (extreme) {
    std::ranges::fill(w, -128);
    for (size_t i = 0; i < x.size(); ++i) x[i] = i / static_cast<size_t>(k) % 2 == 0 ? 127 : -128;
  }
  const std::vector<double> b = random_integers(filters, seed + 2, -60000, 60000);
  std::vector<double> expected, reals;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t m = 0; m < filters; ++m) {
      int64_t sum = has_bias ? static_cast<int64_t>(b[static_cast<size_t>(m)]) : 0;
      for (int64_t i = 0; i < k; ++i)
        sum += (static_cast<int64_t>(x[static_cast<size_t>(r * k + i)]) - integers.x_zero) *
               (static_cast<int64_t>(w[static_cast<size_t>(m * k + i)]) - integers.weight_zero);
      expected.push_back(integers.result(sum, m));
      reals.push_back(integers.real(sum, m));
    }
  }
  Params params{{"bias", int64_t{has_bias}}};
  integers.set(params);
  std::vector<Tensor> inputs = {plain({rows, k}, x, DType::i8), plain({filters, k}, w, DType::i8)};
  if (has_bias) inputs.push_back(plain({filters}, b, DType::i32));
  const TensorView out = TensorView::plain(DType::i8, std::vector<int64_t>{rows, filters});
  const TensorView of_reals = TensorView::plain(DType::f32, std::vector<int64_t>{rows, filters});
  if (steps.empty() && integers.rounding == Rounding::half_even_fp32)
    check_kernel("linear_i8", inputs, {of_reals}, params, {reals}, kOfReals,
                 text("linear to reals of ", rows, "x", k, " by ", filters));
  check_kernel("linear_i8", inputs, {out}, params, {expected}, 0, text("linear of ", rows, "x", k, " by ", filters),
               steps);
  if (!steps.empty()) return;
  const SumBehind sum(integers, expected, static_cast<int>(inputs.size()));
  inputs.push_back({out, sum.other});
  check_kernel("linear_i8", inputs, {out}, params, {sum.expected}, 0,
               text("linear and a sum of ", rows, "x", k, " by ", filters), sum.steps);
}

TEST(IntegerLinear, EveryTailOfRowsDepthsAndFilters) {
  for (const int64_t rows : {1, 2, 5, 13, 14, 15, 29})
    for (const int64_t k : {1, 3, 4, 6, 31, 64})
      for (const int64_t filters : {1, 15, 16, 17, 33, 50}) {
        check_linear({.rows = rows, .k = k, .filters = filters, .integers = Integers::of(filters, 0.02, 0.05, 3, -7)});
        if (HasFatalFailure()) return;
      }
}

TEST(IntegerLinear, NothingSaturatesBeforeTheEnd) {
  for (const int zero : {-128, 0, 127}) {
    const Integers integers{.x_scale = 0.01, .y_scale = 700, .x_zero = zero, .y_zero = zero, .weight_scales = {1}};
    check_linear({.rows = 4, .k = 4096, .filters = 20, .integers = integers, .extreme = true});
    check_linear({.rows = 3, .k = 30000, .filters = 3, .bias = false, .integers = integers, .extreme = true});
    if (HasFatalFailure()) return;
  }
}

TEST(IntegerLinear, HalvesGoToTheEvenInteger) {
  // Factor 1/2: every odd sum is a half.
  const Integers integers{.x_scale = 0.5, .y_scale = 1, .x_zero = 0, .y_zero = 1, .weight_scales = {1}};
  check_linear({.rows = 40, .k = 1, .filters = 18, .bias = false, .integers = integers});
}

TEST(IntegerLinear, ManyRowsShared) {
  check_linear({.rows = 1500, .k = 24, .filters = 40, .integers = Integers::of(40, 0.03, 0.2, -128, 127)});
  check_linear({.rows = 1, .k = 512, .filters = 700, .integers = Integers::of(700, 0.03, 0.2, 127, -128)});
}

TEST(IntegerLinear, BoundsOfTheResult) {
  Integers integers{.x_scale = 0.02, .y_scale = 0.05, .x_zero = 3, .y_zero = -7, .weight_scales = {0.01}};
  integers.low = -7;
  check_linear({.rows = 5, .k = 40, .filters = 20, .integers = integers, .steps = {{"relu", -1, {}}}});
  integers.high = -7 + 60;
  check_linear({.rows = 5, .k = 40, .filters = 20, .integers = integers, .steps = {{"clamp", -1, {0, 3}}}});
  // The closing bounds win where the two do not meet.
  integers.low = integers.high = -7 - 40;
  check_linear(
      {.rows = 5, .k = 40, .filters = 20, .integers = integers, .steps = {{"relu", -1, {}}, {"clamp", -1, {-4, -2}}}});
}

TEST(IntegerLinear, WeightsWithAZeroPoint) {
  for (const int zero : {-128, 5, 127}) {
    Integers integers = Integers::of(35, 0.02, 0.3, 7, -7);
    integers.weight_zero = zero;
    check_linear({.rows = 17, .k = 30, .filters = 35, .integers = integers});
  }
}

TEST(IntegerLinear, OtherRoundings) {
  for (const auto& [rounding, name] : kRoundings) {
    Integers integers = Integers::of(20, 0.02, 0.3, 7, -7);
    integers.rounding = rounding;
    check_linear({.rows = 17, .k = 30, .filters = 20, .integers = integers});
  }
}

TEST(IntegerLinear, ABiasOfAnotherScaleIsConverted) {
  Params params{{"bias", int64_t{1}}};
  const Integers integers{.x_scale = 0.5, .y_scale = 1, .x_zero = 0, .y_zero = 0, .weight_scales = {1}};
  integers.set(params);
  params.set("bias.scales", std::vector<double>{1.0});
  check_kernel("linear_i8",
               {plain({1, 1}, {0}, DType::i8), plain({2, 1}, {1, 1}, DType::i8), plain({2}, {30, -7}, DType::i32)},
               {TensorView::plain(DType::i8, std::vector<int64_t>{1, 2})}, params, {{30, -7}}, 0, "bias");
}

TEST(IntegerLinear, RefusesWhatItsFormulaIsNot) {
  const std::vector<int64_t> one = {1, 1};
  const std::vector<TensorView> inputs = {TensorView::plain(DType::i8, one), TensorView::of_weight(DType::i8, one)};
  const std::vector<TensorView> outputs = {TensorView::plain(DType::i8, one)};
  const auto create = [&](const auto& change) {
    Params params;
    Integers{}.set(params);
    change(params);
    make_kernel(*find_kernel("linear_i8"), {inputs, outputs, params});
  };
  create([](Params&) {});
  EXPECT_ERROR(create([](Params& p) {
                 p.set("x.scales", std::vector<double>{1, 2});
               }),
               Unsupported, "one scale", "got 2");
  const std::vector<int64_t> long_row = {1, (1 << 16) + 1};
  const std::vector<TensorView> long_inputs = {TensorView::plain(DType::i8, long_row),
                                               TensorView::of_weight(DType::i8, long_row)};
  Params params;
  Integers{}.set(params);
  EXPECT_ERROR(make_kernel(*find_kernel("linear_i8"), {long_inputs, outputs, params}), Unsupported,
               "at most 65536 products", "got 65537");
  const std::vector<double> scale = {1};
  const std::vector<int64_t> zero = {0};
  const Params without_bias_scale{{"bias", int64_t{1}},     {"x.scales", scale},    {"x.zeros", zero},
                                  {"weight.scales", scale}, {"weight.zeros", zero}, {"y.scales", scale},
                                  {"y.zeros", zero}};
  const std::vector<TensorView> biased = {inputs[0], inputs[1], TensorView::of_weight(DType::i32, zero)};
  EXPECT_ERROR(make_kernel(*find_kernel("linear_i8"), {biased, outputs, without_bias_scale}), Unsupported,
               "quantized biases");
}

TEST(IntegerLinear, ASumOfAnotherKindIsRefused) {
  const auto plain_view = [](DType dtype, std::vector<int64_t> shape) { return TensorView::plain(dtype, shape); };
  Params params{{"bias", int64_t{0}}};
  Integers::of(4, 0.02, 0.05, 3, -7).set(params);
  TensorView weight = TensorView::of_weight(DType::i8, std::vector<int64_t>{4, 8});
  weight.packed = true;
  const TensorView out = plain_view(DType::i8, {2, 4});
  const auto create = [&](const TensorView& other, const Step& step) {
    const std::vector<TensorView> inputs = {plain_view(DType::i8, {2, 8}), weight, other}, outputs = {out};
    const std::vector<Step> steps = {step};
    return make_kernel(*find_kernel("linear_i8"), {inputs, outputs, params, steps});
  };
  const Step sum = {std::string(kSumOfI8), 2, {0.05, -7, 0.03, 1, 0.06, 0}};
  try {
    EXPECT_NE(create(out, sum), nullptr);
  } catch (const Unsupported& error) {  // by the instruction set in use
    EXPECT_NE(std::string(error.what()).find("no quick way"), std::string::npos) << error.what();
  }
  EXPECT_THROW(create(plain_view(DType::i8, {2, 1}), sum), Unsupported);
  EXPECT_THROW(create(plain_view(DType::f32, {2, 4}), sum), Unsupported);
  EXPECT_THROW(create(out, {sum.function, 3, sum.values}), Unsupported);
  EXPECT_THROW(create(out, {sum.function, -1, sum.values}), Unsupported);
  EXPECT_THROW(create(out, {sum.function, 2, {0.05, -7}}), Unsupported);
}

}  // namespace
}  // namespace hetnn::kernels::testing
