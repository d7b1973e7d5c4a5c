// The formulas of formulas.inc over values of any type. V is a number (vocabulary.h), or a class that has constant(),
// and beside it, in its own namespace, the functions of the vocabulary.
#pragma once

#include <type_traits>

#include "hetnn/base/convert.h"
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/elementwise/vocabulary.h"

namespace hetnn::ops {

namespace vocabulary {  // NOLINTBEGIN(readability-identifier-naming): of what algebras are made of, beside formulas
// clang-format off
template <typename V> bool Eq(V x, V y) { return x == y; }
template <typename V> bool And(V x, V y) { return x && y; }
template <typename V> bool Or(V x, V y) { return x || y; }
// clang-format on
}  // namespace vocabulary
// NOLINTEND(readability-identifier-naming)

namespace formula {

using namespace vocabulary;  // NOLINT(google-build-using-namespace): formulas are written in it

template <typename V>
struct Of {
  static V Const(double value) {  // NOLINT(readability-identifier-naming)
    if constexpr (std::is_arithmetic_v<V>)
      return convert<V>(value);
    else
      return V::constant(value);
  }
#define HETNN_FUNCTION(name, operands, constants, cost, domain, tolerance, ...)                             \
  static V name([[maybe_unused]] V x, [[maybe_unused]] V y, [[maybe_unused]] V c0, [[maybe_unused]] V c1) { \
    __VA_ARGS__                                                                                             \
  }
#include "hetnn/ops/elementwise/formulas.inc"
#undef HETNN_FUNCTION
};

}  // namespace formula

/// The function that a call computes, if it is one of formulas.inc; by what attribute where an operator has two.
std::optional<Function> called_function(const Call& call);

/// The function of x (and y), with its constants.
template <typename V>
V apply(Function function, const V& x, const V& y, const V& c0, const V& c1) {
  using Formula = V (*)(V, V, V, V);
  static constexpr Formula kFormulas[] = {
#define HETNN_FUNCTION(name, ...) formula::Of<V>::name,
#include "hetnn/ops/elementwise/formulas.inc"
#undef HETNN_FUNCTION
  };
  return kFormulas[static_cast<size_t>(function)](x, y, c0, c1);
}

}  // namespace hetnn::ops
