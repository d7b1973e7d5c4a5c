// What is known of expressions when they are made, and their text.
#include "hetnn/ops/elementwise/expression.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hetnn/base/error.h"

namespace hetnn::ops {

struct Expression::Term {
  std::string_view op;
  std::string name;
  double number = 0;
  std::vector<Expression> in;
};

Expression Expression::constant(double value) {
  Expression out;
  out.term_ = std::make_shared<Term>(Term{{}, {}, value, {}});
  return out;
}

Expression Expression::operand(std::string name) {
  Expression out;
  out.term_ = std::make_shared<Term>(Term{{}, std::move(name), 0, {}});
  return out;
}

Expression Expression::of(std::string_view op, std::vector<Expression> in) {
  Expression out;
  if (std::all_of(in.begin(), in.end(), [](const Expression& each) { return static_cast<bool>(each); }))
    out.term_ = std::make_shared<Term>(Term{op, {}, 0, std::move(in)});
  return out;
}

std::string_view Expression::op() const { return term_->op; }
const std::string& Expression::name() const { return term_->name; }
double Expression::number() const { return term_->number; }
const std::vector<Expression>& Expression::in() const { return term_->in; }

namespace {

bool is_number(const Expression& x) { return x && x.op().empty() && x.name().empty(); }

// The result where both are numbers.
template <typename F>
Expression folded(std::string_view op, const Expression& x, const Expression& y, F f) {
  return is_number(x) && is_number(y) ? Expression::constant(f(x.number(), y.number())) : Expression::of(op, {x, y});
}

}  // namespace

bool Expression::is(double value) const { return is_number(*this) && number() == value; }

// NOLINTBEGIN(readability-identifier-naming): the vocabulary's names
Expression Add(const Expression& x, const Expression& y) {
  if (!x || !y) return {};
  if (x.is(0)) return y;
  if (y.is(0)) return x;
  return folded("add", x, y, std::plus<>());
}

Expression Sub(const Expression& x, const Expression& y) {
  if (!x || !y) return {};
  if (y.is(0)) return x;
  return x.is(0) ? Neg(y) : folded("sub", x, y, std::minus<>());
}

// A 0 is one that a formula names or a slope that is none: what it multiplies does not count.
Expression Mul(const Expression& x, const Expression& y) {
  if (!x || !y) return {};
  if (x.is(0) || y.is(0)) return Expression::constant(0);
  if (x.is(1)) return y;
  if (y.is(1)) return x;
  if (x.is(-1)) return Neg(y);
  return y.is(-1) ? Neg(x) : folded("mul", x, y, std::multiplies<>());
}

Expression Div(const Expression& x, const Expression& y) {
  if (!x || !y) return {};
  if (x.is(0)) return x;
  if (y.is(1)) return x;
  return x.is(1) && !is_number(y) ? Expression::of("reciprocal", {y}) : folded("div", x, y, std::divides<>());
}

Expression Neg(const Expression& x) {
  if (!x) return {};
  if (is_number(x)) return Expression::constant(-x.number());
  return x.op() == "neg" ? x.in()[0] : Expression::of("neg", {x});
}

Expression Select(const Expression& condition, const Expression& x, const Expression& y) {
  if (!condition || !x || !y) return {};
  if (x.identity() == y.identity() || (is_number(x) && y.is(x.number()))) return x;
  return Expression::of("where", {condition, x, y});
}

Expression Not(const Expression& x) {
  if (!x) return {};
  if (x.op() == "eq") return Expression::of("ne", x.in());
  return x.op() == "ne" ? Expression::of("eq", x.in()) : Expression::of("logical_not", {x});
}
// NOLINTEND(readability-identifier-naming)

namespace {

// How tightly an operator binds, and its sign between two operands.
struct Infix {
  std::string_view op, sign;
  int binds;
};
constexpr std::array kInfix = {Infix{"logical_or", " or ", 0}, Infix{"logical_and", " and ", 0},
                               Infix{"eq", " = ", 1},          Infix{"ne", " != ", 1},
                               Infix{"gt", " > ", 1},          Infix{"ge", " >= ", 1},
                               Infix{"add", " + ", 2},         Infix{"sub", " - ", 2},
                               Infix{"mul", " * ", 3},         Infix{"div", " / ", 3}};

std::string text_of(const Expression& x, int around) {
  if (is_number(x)) {
    const std::string number = text(x.number());
    return x.number() < 0 && around > 2 ? "(" + number + ")" : number;
  }
  if (x.op().empty()) return x.name();
  const auto within = [around](std::string out, int binds) { return binds < around ? "(" + out + ")" : out; };
  const auto* infix = std::ranges::find(kInfix, x.op(), &Infix::op);
  if (infix != kInfix.end())
    return within(text_of(x.in()[0], infix->binds) + std::string(infix->sign) + text_of(x.in()[1], infix->binds + 1),
                  infix->binds);
  if (x.op() == "neg") return within("-" + text_of(x.in()[0], 3), 2);
  if (x.op() == "reciprocal") return within("1 / " + text_of(x.in()[0], 4), 3);
  if (x.op() == "where")
    return within(text_of(x.in()[1], 1) + " where " + text_of(x.in()[0], 1) + ", else " + text_of(x.in()[2], 0), 0);
  std::string out = std::string(x.op()) + "(";
  for (size_t k = 0; k < x.in().size(); ++k) out += (k ? ", " : "") + text_of(x.in()[k], 0);
  return out + ")";
}

}  // namespace

std::string to_string(const Expression& expression) { return text_of(expression, 0); }

}  // namespace hetnn::ops
