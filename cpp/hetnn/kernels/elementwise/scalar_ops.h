// Elementwise arithmetic on single elements of any type: the meaning of every op, and its speed where f32 is not
// concerned.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

#include "hetnn/kernels/block_ops.h"

namespace hetnn::kernels {

/// x + y, x - y and x * y of integers wrap around instead of overflowing.
template <typename T, typename F>
T wrapping(T x, T y, F f) {
  if constexpr (std::is_floating_point_v<T>) {
    return f(x, y);
  } else {
    return static_cast<T>(f(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
  }
}

/// v0, v1 are the op's constants. Integers wrap; ops that leave the integers (sigmoid, exp ...) round toward zero at
/// the end.
template <typename T>
T scalar_unary(BlockOp op, T x, double v0, double v1) {
  using F = std::conditional_t<std::is_floating_point_v<T>, T, double>;
  const auto f = static_cast<F>(x);
  const auto a = static_cast<F>(v0);
  const auto back = [](F value) { return static_cast<T>(value); };
  const auto sigmoid = [](F value) { return F(1) / (F(1) + std::exp(-value)); };
  const auto hardsigmoid = [](F value) {
    const F y = value / F(6) + F(0.5);
    return y < F(0) ? F(0) : y > F(1) ? F(1) : y;
  };
  switch (op) {
    case BlockOp::relu:
      return x < T(0) ? T(0) : x;
    case BlockOp::clip: {
      const F low = f < static_cast<F>(v0) ? static_cast<F>(v0) : f;
      return back(low > static_cast<F>(v1) ? static_cast<F>(v1) : low);
    }
    case BlockOp::leaky_relu:
      return back(f > F(0) ? f : f * a);
    case BlockOp::elu:
      return back(f > F(0) ? f : std::expm1(f) * a);
    case BlockOp::silu:
      return back(f / (F(1) + std::exp(-f)));
    case BlockOp::hardswish:
      return back(f * hardsigmoid(f));
    case BlockOp::hardsigmoid:
      return back(hardsigmoid(f));
    case BlockOp::sigmoid:
      return back(sigmoid(f));
    case BlockOp::tanh:
      return back(std::tanh(f));
    case BlockOp::gelu:
      return back(F(0.5) * f * (F(1) + std::erf(f * F(0.70710678118654752440))));
    case BlockOp::gelu_tanh:
      return back(F(0.5) * f * (F(1) + std::tanh(F(0.79788456080286535588) * (f + F(0.044715) * f * f * f))));
    case BlockOp::mish:
      return back(f * std::tanh(f > F(20) ? f : std::log1p(std::exp(f))));
    case BlockOp::softplus:
      return back(f > F(20) ? f : std::log1p(std::exp(f)));
    case BlockOp::abs:
      if constexpr (std::is_floating_point_v<T>) return std::abs(x);
      return x < T(0) ? wrapping(T(0), x, std::minus<>()) : x;
    case BlockOp::neg:
      if constexpr (std::is_floating_point_v<T>) return -x;
      return wrapping(T(0), x, std::minus<>());
    case BlockOp::square:
      return wrapping(x, x, std::multiplies<>());
    case BlockOp::sqrt:
      return back(std::sqrt(f));
    case BlockOp::rsqrt:
      return back(F(1) / std::sqrt(f));
    case BlockOp::reciprocal:
      return back(F(1) / f);
    case BlockOp::exp:
      return back(std::exp(f));
    case BlockOp::log:
      return back(std::log(f));
    case BlockOp::sin:
      return back(std::sin(f));
    case BlockOp::cos:
      return back(std::cos(f));
    case BlockOp::erf:
      return back(std::erf(f));
    case BlockOp::floor:
      return back(std::floor(f));
    case BlockOp::ceil:
      return back(std::ceil(f));
    case BlockOp::round:
      return back(std::nearbyint(f));
    case BlockOp::sign:
      return x > T(0) ? T(1) : x < T(0) ? static_cast<T>(-1) : x;
    case BlockOp::scale:
      return back(f * a);
    case BlockOp::shift:
      return back(f + a);
    default:
      return x;
  }
}

/// Division of integers truncates; floor_div rounds down and remainder has the divisor's sign. An integer divisor of
/// zero gives zero, where the hardware would stop the process.
template <typename T>
T scalar_binary(BlockOp op, T x, T y) {
  constexpr bool kFloat = std::is_floating_point_v<T>;
  switch (op) {
    case BlockOp::add:
      return wrapping(x, y, std::plus<>());
    case BlockOp::sub:
      return wrapping(x, y, std::minus<>());
    case BlockOp::mul:
      return wrapping(x, y, std::multiplies<>());
    case BlockOp::div:
      if constexpr (kFloat) return x / y;
      return y == T(0) ? T(0) : static_cast<T>(x / y);
    case BlockOp::max:
      if constexpr (kFloat)
        if (std::isnan(x)) return x;
      return x > y ? x : y;
    case BlockOp::min:
      if constexpr (kFloat)
        if (std::isnan(x)) return x;
      return x < y ? x : y;
    case BlockOp::pow:
      if constexpr (kFloat) {
        return std::pow(x, y);
      } else {
        T result = T(1), base = x;
        for (T rest = y; rest > T(0); rest = static_cast<T>(rest / 2)) {
          if (rest % 2 != 0) result = wrapping(result, base, std::multiplies<>());
          base = wrapping(base, base, std::multiplies<>());
        }
        return result;
      }
    case BlockOp::remainder:
      if constexpr (kFloat) {
        const T m = std::fmod(x, y);
        return m != T(0) && (m < T(0)) != (y < T(0)) ? m + y : m;
      } else {
        if (y == T(0)) return T(0);
        const T m = static_cast<T>(x % y);
        return m != T(0) && (m < T(0)) != (y < T(0)) ? static_cast<T>(m + y) : m;
      }
    case BlockOp::floor_div:
      if constexpr (kFloat) {
        return std::floor(x / y);
      } else {
        if (y == T(0)) return T(0);
        const T q = static_cast<T>(x / y);
        return x % y != T(0) && (x < T(0)) != (y < T(0)) ? static_cast<T>(q - T(1)) : q;
      }
    case BlockOp::prelu:
      return x > T(0) ? x : wrapping(x, y, std::multiplies<>());
    default:
      return x;
  }
}

enum class CompareOp : uint8_t { eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor };

template <typename T>
bool scalar_compare(CompareOp op, T x, T y) {
  switch (op) {
    case CompareOp::eq:
      return x == y;
    case CompareOp::ne:
      return x != y;
    case CompareOp::lt:
      return x < y;
    case CompareOp::le:
      return x <= y;
    case CompareOp::gt:
      return x > y;
    case CompareOp::ge:
      return x >= y;
    case CompareOp::logical_and:
      return x != T(0) && y != T(0);
    case CompareOp::logical_or:
      return x != T(0) || y != T(0);
    case CompareOp::logical_xor:
      return (x != T(0)) != (y != T(0));
  }
  return false;
}

/// As torch where that is defined: floats to integers truncate, to bool compare with zero. NaN and values out of range
/// give the least integer.
template <typename To, typename From>
To scalar_cast(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    const auto low = static_cast<double>(std::numeric_limits<To>::min());
    const double limit = std::ldexp(1.0, std::numeric_limits<To>::digits);
    const auto value = static_cast<double>(x);
    if (!(value > low - 1.0 && value < limit)) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace hetnn::kernels
