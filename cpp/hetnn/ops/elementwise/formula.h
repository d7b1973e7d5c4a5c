// The formulas of formulas.inc over values of any type. V is a number (vocabulary.h), or a class that has constant(),
// and beside it, in its own namespace, the functions of the vocabulary.
#pragma once

#include <type_traits>

#include "hetnn/base/convert.h"
#include "hetnn/ops/elementwise/function.h"
#include "hetnn/ops/elementwise/vocabulary.h"

namespace hetnn::ops {
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
#define HETNN_FUNCTION(name, operands, constants, cost, domain, tolerance, def, ...)                        \
  static V name([[maybe_unused]] V x, [[maybe_unused]] V y, [[maybe_unused]] V c0, [[maybe_unused]] V c1) { \
    __VA_ARGS__                                                                                             \
  }
#define HETNN_PREDICATE(name, operands, def, ...) \
  static auto name(V x, [[maybe_unused]] V y) { __VA_ARGS__ }
#define HETNN_BITS(name, operands, def, ...) \
  static V name(V x, [[maybe_unused]] V y) { __VA_ARGS__ }
#include "hetnn/ops/elementwise/formulas.inc"
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
  };
  return kFormulas[static_cast<size_t>(function)](x, y, c0, c1);
}

/// Whether x (and y) are so, as whatever V says what may be so.
template <typename V>
auto apply(Predicate predicate, const V& x, const V& y) {
  using Formula = decltype(&formula::Of<V>::eq);
  static constexpr Formula kFormulas[] = {
#define HETNN_PREDICATE(name, ...) formula::Of<V>::name,
#include "hetnn/ops/elementwise/formulas.inc"
  };
  return kFormulas[static_cast<size_t>(predicate)](x, y);
}

}  // namespace hetnn::ops
