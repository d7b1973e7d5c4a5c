// The formulas run over expressions, over dual numbers of expressions and over complex numbers of them.
#include "hetnn/ops/elementwise/readings.h"

#include <utility>

#include "hetnn/ops/elementwise/complex.h"
#include "hetnn/ops/elementwise/dual.h"

namespace hetnn::ops {
namespace {

Expression constant_of(Function function, size_t k) {
  return Expression::operand(std::string(function_def(function).constants[k]));
}

}  // namespace

Expression value_of(Function function, std::string x, std::string y) {
  return apply(function, Expression::operand(std::move(x)), Expression::operand(std::move(y)), constant_of(function, 0),
               constant_of(function, 1));
}

Expression value_of(Predicate predicate, std::string x, std::string y) {
  return apply(predicate, Expression::operand(std::move(x)), Expression::operand(std::move(y)));
}

std::vector<Expression> slopes_of(Function function) {
  using V = Dual<Expression>;
  std::vector<Expression> out;
  const auto still = [](Expression value) { return V{std::move(value), Expression::constant(0)}; };
  for (int k = 0; k < function_def(function).operands; ++k) {
    V x = still(Expression::operand("x")), y = still(Expression::operand("y"));
    (k == 0 ? x : y).slope = Expression::constant(1);
    out.push_back(apply(function, x, y, still(constant_of(function, 0)), still(constant_of(function, 1))).slope);
  }
  return out;
}

std::vector<Expression> complex_parts_of(Function function) {
  using V = Complex<Expression>;
  const auto real = [](Expression value) { return V{std::move(value), Expression::constant(0)}; };
  const V x = {Expression::operand("x.re"), Expression::operand("x.im")},
          y = {Expression::operand("y.re"), Expression::operand("y.im")};
  const V found = apply(function, x, y, real(constant_of(function, 0)), real(constant_of(function, 1)));
  return {found.re, found.im};
}

}  // namespace hetnn::ops
