// Elementwise operators on the edges of every type, against what the C++ language and its library say of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "edge_values.h"
#include "hetnn/ops/elementwise/function.h"

namespace hetnn::ops::testing {
namespace {

__extension__ using Wide128 = __int128;

// What is expected of functions on reals, in more digits than f32 and f64 have.
using Real = long double;
Real limited(Real x, Real low, Real high) { return x < low ? low : x > high ? high : x; }
Real hardsigmoid(Real x) { return limited(x + 3, 0, 6) / 6; }
// Beyond what f32 holds, the cube is infinite there and is not here; the product is the same.
Real gelu_tanh(Real x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PIl) * (x + 0.044715L * x * x * x))); }

const std::map<std::string, Real (*)(Real)> kRealUnary = {
    {"relu", [](Real x) { return x < 0 ? 0 : x; }},
    {"clamp", [](Real x) { return limited(x, -1.5L, 2.5L); }},
    {"leaky_relu", [](Real x) { return x > 0 ? x : x * 0.125L; }},
    {"elu", [](Real x) { return x > 0 ? x : 0.5L * std::expm1(x); }},
    {"silu", [](Real x) { return x / (1 + std::exp(-x)); }},
    {"hardswish", [](Real x) { return x * hardsigmoid(x); }},
    {"hardsigmoid", hardsigmoid},
    {"sigmoid", [](Real x) { return 1 / (1 + std::exp(-x)); }},
    {"tanh", [](Real x) { return std::tanh(x); }},
    {"gelu", [](Real x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0L))); }},
    {"mish", [](Real x) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"abs", [](Real x) { return std::abs(x); }},
    {"neg", [](Real x) { return -x; }},
    {"sqrt", [](Real x) { return std::sqrt(x); }},
    {"rsqrt", [](Real x) { return 1 / std::sqrt(x); }},
    {"reciprocal", [](Real x) { return 1 / x; }},
    {"exp", [](Real x) { return std::exp(x); }},
    {"log", [](Real x) { return std::log(x); }},
    {"sin", [](Real x) { return std::sin(x); }},
    {"cos", [](Real x) { return std::cos(x); }},
    {"erf", [](Real x) { return std::erf(x); }},
    {"erfc", [](Real x) { return std::erfc(x); }},
    {"floor", [](Real x) { return std::floor(x); }},
    {"ceil", [](Real x) { return std::ceil(x); }},
    {"round", [](Real x) { return std::nearbyint(x); }},
    {"sign", [](Real x) { return Real(x > 0) - Real(x < 0); }},
};
const std::map<std::string, Real (*)(Real, Real)> kRealBinary = {
    {"add", [](Real a, Real b) { return a + b; }},
    {"sub", [](Real a, Real b) { return a - b; }},
    {"mul", [](Real a, Real b) { return a * b; }},
    {"div", [](Real a, Real b) { return a / b; }},
    {"maximum", [](Real a, Real b) { return std::isnan(a)   ? a
                                            : std::isnan(b) ? b
                                                            : std::max(a, b); }},
    {"minimum", [](Real a, Real b) { return std::isnan(a)   ? a
                                            : std::isnan(b) ? b
                                                            : std::min(a, b); }},
    {"pow", [](Real a, Real b) { return std::pow(a, b); }},
};

// Of integers, before they wrap.
Wide128 power(Wide128 x, Wide128 y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
  uint64_t out = 1;
  // Powers of -1, 0 and 1 repeat; others are computed modulo 2^64.
  for (Wide128 k = 0; k < (x == 0 || x == 1 || x == -1 ? y % 2 + (y > 0 ? 2 : 0) : y); ++k)
    out *= static_cast<uint64_t>(x);
  return out;
}
const std::map<std::string, Wide128 (*)(Wide128)> kWholeUnary = {
    {"relu", [](Wide128 x) { return x < 0 ? 0 : x; }},
    {"clamp", [](Wide128 x) { return x < -1  ? -1
                                     : x > 2 ? 2
                                             : x; }},
    {"abs", [](Wide128 x) { return x < 0 ? -x : x; }},
    {"neg", [](Wide128 x) { return -x; }},
    {"floor", [](Wide128 x) { return x; }},
    {"ceil", [](Wide128 x) { return x; }},
    {"round", [](Wide128 x) { return x; }},
    {"sign", [](Wide128 x) { return Wide128(x > 0) - Wide128(x < 0); }},
};
const std::map<std::string, Wide128 (*)(Wide128, Wide128)> kWholeBinary = {
    {"add", [](Wide128 a, Wide128 b) { return a + b; }},
    {"sub", [](Wide128 a, Wide128 b) { return a - b; }},
    {"mul",
     [](Wide128 a, Wide128 b) {
       const uint64_t wrapped = uint64_t(a) * uint64_t(b);  // modulo 2^64
       return Wide128(wrapped);
     }},
    {"div", [](Wide128 a, Wide128 b) { return a / b; }},
    {"maximum", [](Wide128 a, Wide128 b) { return std::max(a, b); }},
    {"minimum", [](Wide128 a, Wide128 b) { return std::min(a, b); }},
    {"pow", power},
};

Attrs attrs_of(const std::string& op) {
  if (op == "clamp") return {{"min", -1.5}, {"max", 2.5}};
  if (op == "leaky_relu") return {{"negative_slope", 0.125}};
  if (op == "elu") return {{"alpha", 0.5}};
  return {};
}

// Up to a few roundings, by units of what the type is computed in, of a result or a summand of at most `summand`.
template <typename T>
void expect_near(T found, Real expected, const std::string& what, Real summand = 0) {
  using V = Wide<T>;
  const V value = found, rounded = static_cast<V>(T(static_cast<V>(expected)));
  if (std::isnan(expected) || std::isinf(rounded)) {
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(value) : value == rounded)
        << what << " is " << value << ", expected " << rounded;
    return;
  }
  constexpr Real kUnit = kIsNarrowFloat<T> ? (DTypeOf<T>::value == DType::f16 ? 0x1p-10L : 0x1p-7L)
                                           : 8 * static_cast<Real>(std::numeric_limits<V>::epsilon());
  constexpr Real kLeast =
      DTypeOf<T>::value == DType::f16 ? 0x1p-23L : 4 * static_cast<Real>(std::numeric_limits<V>::min());
  EXPECT_LE(std::abs(static_cast<Real>(value) - expected), kUnit * std::max(std::abs(expected), summand) + kLeast)
      << what << " is " << value << ", expected " << rounded;
}

template <typename T>
std::string shown(T x) {
  if constexpr (kIsFloat<T>)
    return std::to_string(static_cast<double>(static_cast<Wide<T>>(x)));
  else
    return std::to_string(x);
}

// Every pair of edges as two tensors.
template <typename T>
std::pair<std::vector<T>, std::vector<T>> pairs() {
  std::pair<std::vector<T>, std::vector<T>> out;
  for (const T a : edges<T>()) {
    for (const T b : edges<T>()) out.first.push_back(a), out.second.push_back(b);
  }
  return out;
}

// The largest summand of functions that cancel: x / 2 + x / 2 erf(x / sqrt(2)), x / 6 + 1 / 2.
template <typename T>
Real summand_of(const std::string& op, T x) {
  const Real magnitude = std::abs(static_cast<Real>(static_cast<Wide<T>>(x)));
  return op == "gelu" ? magnitude / 2 : op.starts_with("hards") ? std::max(magnitude, 1.0L) : 0;
}

TEST(Elementwise, UnaryFunctionsOfReals) {
  for_all_types([](auto zero) {
    using T = decltype(zero);
    if constexpr (kIsFloat<T>) {
      const std::vector<T> x = edges<T>();
      for (const auto& [op, expected] : kRealUnary) {
        const Tensor y = evaluate(op, {tensor(x)}, attrs_of(op));
        for (size_t k = 0; k < x.size(); ++k)
          expect_near(y.values<T>()[k], expected(static_cast<Wide<T>>(x[k])), op + "(" + shown(x[k]) + ")",
                      summand_of(op, x[k]));
      }
      const Tensor y = evaluate("gelu", {tensor(x)}, {{"approximate", std::string("tanh")}});
      for (size_t k = 0; k < x.size(); ++k)
        expect_near(y.values<T>()[k], gelu_tanh(static_cast<Wide<T>>(x[k])), "gelu_tanh(" + shown(x[k]) + ")",
                    summand_of("gelu", x[k]));
    }
  });
}

TEST(Elementwise, BinaryFunctionsOfReals) {
  for_all_types([](auto zero) {
    using T = decltype(zero);
    if constexpr (kIsFloat<T>) {
      const auto [a, b] = pairs<T>();
      for (const auto& [op, expected] : kRealBinary) {
        const Tensor y = evaluate(op, {tensor(a), tensor(b)});
        for (size_t k = 0; k < a.size(); ++k)
          expect_near(y.values<T>()[k], expected(static_cast<Wide<T>>(a[k]), static_cast<Wide<T>>(b[k])),
                      op + "(" + shown(a[k]) + ", " + shown(b[k]) + ")");
      }
    }
  });
}

TEST(Elementwise, UnaryFunctionsOfIntegersWrap) {
  for_all_types([](auto zero) {
    using T = decltype(zero);
    if constexpr (!kIsFloat<T>) {
      const std::vector<T> x = edges<T>();
      for (const auto& [op, expected] : kWholeUnary) {
        const Tensor y = evaluate(op, {tensor(x)}, attrs_of(op));
        for (size_t k = 0; k < x.size(); ++k) {
          // A bound below an unsigned type's least value does not bound.
          const Wide128 want = op == "clamp" && std::is_unsigned_v<T> ? std::min<Wide128>(x[k], 2) : expected(x[k]);
          EXPECT_EQ(y.values<T>()[k], static_cast<T>(want)) << op << "(" << shown(x[k]) << ")";
        }
      }
    }
  });
}

TEST(Elementwise, BinaryFunctionsOfIntegersWrap) {
  for_all_types([](auto zero) {
    using T = decltype(zero);
    if constexpr (!kIsFloat<T>) {
      const auto [all_a, all_b] = pairs<T>();
      for (const auto& [op, expected] : kWholeBinary) {
        std::vector<T> a, b;
        for (size_t k = 0; k < all_a.size(); ++k) {
          if (op == "div" && all_b[k] == 0) continue;
          const bool endless =
              op == "pow" && Wide128(all_b[k]) > 100 && all_a[k] != 0 && all_a[k] != 1 && Wide128(all_a[k]) != -1;
          if (!endless) a.push_back(all_a[k]), b.push_back(all_b[k]);
        }
        const Tensor y = evaluate(op, {tensor(a), tensor(b)});
        for (size_t k = 0; k < a.size(); ++k)
          EXPECT_EQ(y.values<T>()[k], static_cast<T>(expected(a[k], b[k])))
              << op << "(" << shown(a[k]) << ", " << shown(b[k]) << ") of " << dtype_name(DTypeOf<T>::value);
      }
    }
  });
}

TEST(Elementwise, IntegersAreExactBeyondTheDigitsOfDouble) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  const Tensor x = tensor<int64_t>({odd, -odd});
  const auto expect = [](const Tensor& y, std::vector<int64_t> values) {
    EXPECT_THAT(y.values<int64_t>(), ::testing::ElementsAreArray(values));
  };
  expect(evaluate("abs", {x}), {odd, odd});
  expect(evaluate("neg", {x}), {-odd, odd});
  expect(evaluate("clamp", {x}), {odd, -odd});
  expect(evaluate("pow", {tensor<int64_t>({odd, 3}), tensor<int64_t>({1, 39})}), {odd, 4052555153018976267});
  expect(evaluate("pow", {tensor<int64_t>({2, 3}), tensor<int64_t>({64, 41})}), {0, -420491770248316829});
}

TEST(Elementwise, LeastByMinusOneWraps) {
  const auto least = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(evaluate("div", {tensor<int32_t>({least}), tensor<int32_t>({-1})}).values<int32_t>()[0], least);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InvalidModel& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Elementwise, DivisionOfIntegersByZeroIsAnError) {
  for_all_types([](auto zero) {
    using T = decltype(zero);
    const auto divide = [&] { evaluate("div", {tensor<T>({T(1), T(0)}), tensor<T>({T(1), T(0)})}); };
    if constexpr (kIsFloat<T>) {
      EXPECT_NO_THROW(divide());
    } else {
      EXPECT_THAT(message_of(divide), ::testing::AllOf(::testing::HasSubstr("the divisor holds a 0"),
                                                       ::testing::HasSubstr("cast to a real type. (div_c3)")));
    }
  });
}

TEST(Elementwise, BoundsOfIntegersAreWholeAndOfTheirType) {
  const auto clamp = [](auto x, double low, double high) {
    using T = decltype(x);
    return evaluate("clamp", {tensor<T>({x})}, {{"min", low}, {"max", high}}).template values<T>()[0];
  };
  EXPECT_EQ(clamp(int8_t{-100}, -1000.0, 1000.0), -100);
  EXPECT_EQ(clamp(int8_t{5}, 1000.0, 2000.0), 127);
  EXPECT_EQ(clamp(int64_t{5}, -2.5, 2.5), 2);
  EXPECT_EQ(clamp(int64_t{-5}, -2.5, 2.5), -2);
  EXPECT_EQ(clamp(uint8_t{5}, -7.0, -3.0), 0);
  EXPECT_EQ(clamp(int32_t{5}, 3.0, 1.0), 1);  // bounds that cross: the upper one
  EXPECT_EQ(clamp(5.0f, 3.0, 1.0), 1.0f);
}

TEST(Elementwise, FunctionsThatLeaveTheIntegersRefuseThem) {
  for (const OpDef* op : OpTable::global().all()) {
    const std::optional<Function> function = function_from_name(op->name);
    if (!function || function_def(*function).domain != Domain::reals || op->inputs.size() != 1) continue;
    for_all_types([&](auto zero) {
      using T = decltype(zero);
      const auto call = [&] { evaluate(op->name, {tensor<T>({T(1)})}); };
      if constexpr (kIsFloat<T>) {
        EXPECT_NO_THROW(call()) << op->name;
      } else {
        EXPECT_THAT(message_of(call),
                    ::testing::HasSubstr(text("its input must be real; got ", dtype_name(DTypeOf<T>::value),
                                              ". Cast it. (", op->name, "_c1)")));
      }
    });
  }
}

TEST(Elementwise, EveryFunctionIsAnOperatorWithItsConstants) {
  for (const FunctionDef& def : functions()) {
    EXPECT_EQ(&function_def(*function_from_name(def.name)), &def);
    if (def.name == "gelu_tanh") continue;  // a form of gelu
    const OpDef& op = OpTable::global().get(def.name);
    EXPECT_EQ(static_cast<int>(op.inputs.size()), def.operands) << def.name;
    EXPECT_EQ(op.tolerance, def.tolerance) << def.name;
    for (int c = 0; c < def.constant_count(); ++c)
      EXPECT_NE(op.find_attr(def.constants[static_cast<size_t>(c)]), nullptr) << def.name;
  }
  EXPECT_EQ(function_from_name("frobnicate"), std::nullopt);
}

TEST(Elementwise, WhatComputesIntegersIsTestedOnThem) {
  for (const FunctionDef& def : functions()) {
    const std::string name(def.name);
    if (kRealUnary.contains(name)) {
      EXPECT_EQ(kWholeUnary.contains(name), def.domain == Domain::numbers) << name;
    }
    if (kRealBinary.contains(name)) {
      EXPECT_EQ(kWholeBinary.contains(name), def.domain == Domain::numbers) << name;
    }
  }
}

TEST(Elementwise, ComparisonsAndLogicOfEveryType) {
  for_all_types([](auto zero) {
    using T = decltype(zero);
    const auto [a, b] = pairs<T>();
    const auto check = [&, &a = a, &b = b](const char* op, auto expected) {
      const Tensor y = evaluate(op, {tensor(a), tensor(b)});
      for (size_t k = 0; k < a.size(); ++k)
        EXPECT_EQ(y.values<bool>()[k], expected(static_cast<Wide<T>>(a[k]), static_cast<Wide<T>>(b[k])))
            << op << "(" << shown(a[k]) << ", " << shown(b[k]) << ") of " << dtype_name(DTypeOf<T>::value);
    };
    check("eq", std::equal_to<>());
    check("ne", std::not_equal_to<>());
    check("lt", std::less<>());
    check("le", std::less_equal<>());
    check("gt", std::greater<>());
    check("ge", std::greater_equal<>());
    check("logical_and", std::logical_and<>());
    check("logical_or", std::logical_or<>());
    check("logical_xor", [](auto x, auto y) { return (x != decltype(x)(0)) != (y != decltype(y)(0)); });
    const Tensor y = evaluate("logical_not", {tensor(a)});
    for (size_t k = 0; k < a.size(); ++k)
      EXPECT_EQ(y.values<bool>()[k], static_cast<Wide<T>>(a[k]) == Wide<T>(0)) << shown(a[k]);
  });
}

TEST(Elementwise, WhereMovesEveryBitPattern) {
  for_all_types([](auto zero) {
    using T = decltype(zero);
    const std::vector<T> a = edges<T>(), b(a.rbegin(), a.rend());
    std::vector<T> expected;
    std::byte* data = nullptr;
    const Tensor condition = Tensor::zeros(DType::boolean, {static_cast<int64_t>(a.size())}, &data);
    for (size_t k = 0; k < a.size(); ++k) {
      data[k] = std::byte(k % 3 == 0);
      expected.push_back(k % 3 == 0 ? a[k] : b[k]);
    }
    EXPECT_EQ(evaluate("where", {condition, tensor(a), tensor(b)}), tensor(expected));
  });
  const Tensor rows = evaluate(
      "where", {tensor<bool>({true, false}).reshaped({2, 1}), tensor<int64_t>({1, 2, 3}), tensor<int64_t>({9})});
  EXPECT_THAT(rows.values<int64_t>(), ::testing::ElementsAre(1, 2, 3, 9, 9, 9));
}

TEST(Elementwise, PreluKeepsPositivesAndScalesTheRest) {
  for_all_types([](auto zero) {
    using T = decltype(zero);
    if constexpr (kIsFloat<T>) {
      const std::vector<T> x = edges<T>();
      const auto count = static_cast<int64_t>(x.size());
      std::vector<T> twice = x;
      twice.insert(twice.end(), x.begin(), x.end());
      const Tensor y = evaluate("prelu", {tensor(twice).reshaped({1, 2, count}), tensor<T>({T(0.25f), T(-2.0f)})});
      for (size_t k = 0; k < twice.size(); ++k) {
        const Real v = static_cast<Wide<T>>(twice[k]);
        expect_near(y.values<T>()[k], v > 0 ? v : v * (k < x.size() ? 0.25L : -2.0L), "prelu(" + shown(twice[k]) + ")");
      }
    } else {
      EXPECT_THAT(message_of([] {
                    evaluate("prelu", {tensor<T>({T(1)}), tensor<T>({T(1)})});
                  }),
                  ::testing::HasSubstr("must be of one real type"));
    }
  });
}

TEST(Elementwise, NaryFoldsInTheElementsOwnArithmetic) {
  const auto fold = [](const char* op, auto... values) {
    using T = std::common_type_t<decltype(values)...>;
    return evaluate("nary", {tensor<T>({values})...}, {{"op", std::string(op)}}).template values<T>()[0];
  };
  const auto greatest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(fold("add", greatest, int64_t{1}, int64_t{1}), std::numeric_limits<int64_t>::min() + 1);
  EXPECT_EQ(fold("mul", int8_t{100}, int8_t{3}, int8_t{1}), 44);
  EXPECT_EQ(fold("maximum", greatest - 1, greatest, int64_t{-1}), greatest);
  EXPECT_EQ(fold("minimum", uint8_t{3}, uint8_t{255}, uint8_t{7}), 3);
  EXPECT_EQ(fold("add", true, true, false), true);
  EXPECT_TRUE(std::isnan(fold("maximum", 1.0f, std::nanf(""), 2.0f)));
  EXPECT_TRUE(std::isnan(fold("minimum", std::nan(""), 1.0, 2.0)));
  // In f32, and rounded once: 2048 + 1 is no f16, 2048 + 1 + 1 is.
  const Tensor one = tensor<Float16>({Float16(1.0f)}), most = tensor<Float16>({Float16(2048.0f)});
  EXPECT_EQ(static_cast<float>(evaluate("nary", {most, one, one}).values<Float16>()[0]), 2050.0f);
  // What has the coefficient 0 is read only in order.
  const std::vector<Tensor> inputs = {tensor<float>({2.0f}), tensor<float>({INFINITY})};
  Attrs attrs = {{"coefficients", std::vector<double>{-0.5, 0.0}}};
  EXPECT_EQ(evaluate("nary", inputs, attrs).values<float>()[0], -1.0f);
  attrs["deterministic"] = true;
  EXPECT_TRUE(std::isnan(evaluate("nary", inputs, attrs).values<float>()[0]));
  EXPECT_EQ(evaluate("nary", inputs, {{"coefficients", std::vector<double>{0.0, 0.0}}}).values<float>()[0], 0.0f);
}

TEST(Elementwise, FunctionsBroadcast) {
  const Tensor y = evaluate("sub", {tensor<int32_t>({10, 20}).reshaped({2, 1}), tensor<int32_t>({1, 2, 3})});
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(y.values<int32_t>(), ::testing::ElementsAre(9, 8, 7, 19, 18, 17));
  EXPECT_EQ(evaluate("add", {tensor<float>({}), tensor<float>({1.0f})}).elems(), 0);
}

}  // namespace
}  // namespace hetnn::ops::testing
