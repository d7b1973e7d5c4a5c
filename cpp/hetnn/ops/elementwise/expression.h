// Formulas as text: over expressions a formula is the operators that it is made of, to be read or built as nodes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hetnn::ops {

/// A number, an operand, or an operator of the graph and what it takes; none where something has no such form.
class Expression {
 public:
  Expression() = default;
  static Expression constant(double value);
  static Expression operand(std::string name);
  /// None when one of `in` is none. What numbers alone say is computed.
  static Expression of(std::string_view op, std::vector<Expression> in);

  explicit operator bool() const { return term_ != nullptr; }
  bool is(double value) const;
  std::string_view op() const;  // empty of a number and of an operand
  const std::string& name() const;
  double number() const;
  const std::vector<Expression>& in() const;
  const void* identity() const { return term_.get(); }

 private:
  struct Term;
  std::shared_ptr<const Term> term_;
};

/// As an equation's right side.
std::string to_string(const Expression& expression);

// NOLINTBEGIN(readability-identifier-naming): the vocabulary's names
Expression Add(const Expression& x, const Expression& y);
Expression Sub(const Expression& x, const Expression& y);
Expression Mul(const Expression& x, const Expression& y);
Expression Div(const Expression& x, const Expression& y);
Expression Neg(const Expression& x);
inline Expression MulAdd(const Expression& x, const Expression& y, const Expression& z) { return Add(Mul(x, y), z); }
inline Expression Quotient(const Expression& x, const Expression& y) { return Div(x, y); }
Expression Select(const Expression& condition, const Expression& x, const Expression& y);
Expression Not(const Expression& x);
/// What an operand's slope brings where no derivative by it is known.
inline Expression Unknown(const Expression& slope) { return slope.is(0) ? slope : Expression(); }
inline Expression Holds(const Expression& x) { return Expression::of("ne", {x, Expression::constant(0)}); }
inline Expression AtLeast(const Expression& limit, const Expression& x) {
  return Expression::of("maximum", {limit, x});
}
inline Expression AtMost(const Expression& limit, const Expression& x) { return Expression::of("minimum", {limit, x}); }

#define HETNN_WORD(word, op) \
  inline Expression word(const Expression& x) { return Expression::of(op, {x}); }
#define HETNN_WORD2(word, op) \
  inline Expression word(const Expression& x, const Expression& y) { return Expression::of(op, {x, y}); }
HETNN_WORD2(Gt, "gt")
HETNN_WORD2(Ge, "ge")
HETNN_WORD2(Eq, "eq")
HETNN_WORD2(Xor, "logical_xor")
HETNN_WORD2(And, "logical_and")
HETNN_WORD2(Or, "logical_or")
HETNN_WORD2(MaxNan, "maximum")
HETNN_WORD2(MinNan, "minimum")
HETNN_WORD2(Pow, "pow")
HETNN_WORD2(Atan2, "atan2")
HETNN_WORD2(Fmod, "fmod")
HETNN_WORD2(Remainder, "remainder")
HETNN_WORD2(FloorDivide, "floor_divide")
HETNN_WORD(Abs, "abs")
HETNN_WORD(Sqrt, "sqrt")
HETNN_WORD(Exp, "exp")
HETNN_WORD(Exp2, "exp2")
HETNN_WORD(Expm1, "expm1")
HETNN_WORD(Log, "log")
HETNN_WORD(Log2, "log2")
HETNN_WORD(Log10, "log10")
HETNN_WORD(Log1p, "log1p")
HETNN_WORD(Sigmoid, "sigmoid")
HETNN_WORD(Silu, "silu")
HETNN_WORD(Tanh, "tanh")
HETNN_WORD(Erf, "erf")
HETNN_WORD(Erfc, "erfc")
HETNN_WORD(Sin, "sin")
HETNN_WORD(Cos, "cos")
HETNN_WORD(Tan, "tan")
HETNN_WORD(Asin, "asin")
HETNN_WORD(Acos, "acos")
HETNN_WORD(Atan, "atan")
HETNN_WORD(Sinh, "sinh")
HETNN_WORD(Cosh, "cosh")
HETNN_WORD(Asinh, "asinh")
HETNN_WORD(Acosh, "acosh")
HETNN_WORD(Atanh, "atanh")
HETNN_WORD(RoundDown, "floor")
HETNN_WORD(RoundUp, "ceil")
HETNN_WORD(RoundToZero, "trunc")
HETNN_WORD(RoundToEven, "round")
#define HETNN_WORD_1(name, word) HETNN_WORD(word, #name)
#define HETNN_WORD_2(name, word) HETNN_WORD2(word, #name)
#define HETNN_SPECIAL(name, word, operands, ...) HETNN_WORD_##operands(name, word)
#include "hetnn/ops/elementwise/formulas.inc"
#undef HETNN_WORD
#undef HETNN_WORD2
#undef HETNN_WORD_1
#undef HETNN_WORD_2
// NOLINTEND(readability-identifier-naming)

}  // namespace hetnn::ops
