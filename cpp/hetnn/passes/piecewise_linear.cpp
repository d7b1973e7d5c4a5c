// Arithmetic of piecewise linear functions, operator by operator.
#include "hetnn/passes/piecewise_linear.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "hetnn/ops/elementwise/formula.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes {
namespace {

using Operands = std::vector<PiecewiseLinear>;
using Pieces = std::optional<PiecewiseLinear>;

// What people write has two or three pieces; reading stops here, so that it never costs much.
constexpr int kMostNodes = 64;
constexpr size_t kMostKnots = 16;

PiecewiseLinear line(double slope, double offset) {
  return {{{slope, offset}}, {}, {}, slope == 0 ? offset : std::nan("")};
}

size_t piece_of(const PiecewiseLinear& f, double x) {
  return static_cast<size_t>(std::lower_bound(f.knots.begin(), f.knots.end(), x) - f.knots.begin());
}

bool is_knot(const PiecewiseLinear& f, size_t piece, double x) { return piece < f.knots.size() && f.knots[piece] == x; }

double value_at(const PiecewiseLinear& f, double x) {
  const size_t piece = piece_of(f, x);
  return is_knot(f, piece, x) ? f.at[piece] : f.lines[piece](x);
}

// A point between `from` and `to`, either of which may be infinite.
double inside(double from, double to) {
  if (std::isinf(from)) return std::isinf(to) ? 0 : to - std::abs(to) - 1;
  return std::isinf(to) ? from + std::abs(from) + 1 : from + (to - from) / 2;
}

template <typename Visit>
void for_each_piece(const std::vector<double>& knots, Visit visit) {
  double from = -std::numeric_limits<double>::infinity();
  for (size_t k = 0; k <= knots.size(); ++k) {
    const double to = k < knots.size() ? knots[k] : std::numeric_limits<double>::infinity();
    visit(from, to);
    from = to;
  }
}

void sort_knots(std::vector<double>& knots) {
  std::sort(knots.begin(), knots.end());
  knots.erase(std::unique(knots.begin(), knots.end()), knots.end());
}

// All knots of the operands, and, where `crossings`, the points between them at which the first two are equal.
std::vector<double> common_knots(const Operands& operands, bool crossings) {
  std::vector<double> knots;
  for (const PiecewiseLinear& f : operands) knots.insert(knots.end(), f.knots.begin(), f.knots.end());
  sort_knots(knots);
  if (!crossings) return knots;
  const PiecewiseLinear &f = operands[0], &g = operands[1];
  std::vector<double> found;
  for_each_piece(knots, [&](double from, double to) {
    const double middle = inside(from, to);
    const Line a = f.lines[piece_of(f, middle)], b = g.lines[piece_of(g, middle)];
    const double x = a.slope == b.slope ? from : (b.offset - a.offset) / (a.slope - b.slope);
    if (x > from && x < to) found.push_back(x);
  });
  knots.insert(knots.end(), found.begin(), found.end());
  sort_knots(knots);
  return knots;
}

// The result of `of_lines` on every piece and of `of_values` at every knot. `of_lines` also gets a point of the piece.
template <typename OfLines, typename OfValues>
Pieces combine(const Operands& operands, bool crossings, OfLines of_lines, OfValues of_values) {
  PiecewiseLinear out;
  out.knots = common_knots(operands, crossings);
  if (out.knots.size() > kMostKnots) return std::nullopt;
  bool linear = true;
  for_each_piece(out.knots, [&](double from, double to) {
    const double middle = inside(from, to);
    std::vector<Line> lines;
    for (const PiecewiseLinear& f : operands) lines.push_back(f.lines[piece_of(f, middle)]);
    const std::optional<Line> result = of_lines(lines, middle);
    linear = linear && result && std::isfinite(result->slope) && std::isfinite(result->offset);
    if (result) out.lines.push_back(*result);
  });
  if (!linear) return std::nullopt;
  for (double knot : out.knots) {
    std::vector<double> values;
    for (const PiecewiseLinear& f : operands) values.push_back(value_at(f, knot));
    out.at.push_back(of_values(values));
  }
  std::vector<double> of_nan;
  for (const PiecewiseLinear& f : operands) of_nan.push_back(f.of_nan);
  out.of_nan = of_values(of_nan);
  return out;
}

using Lines = std::vector<Line>;
using Values = std::vector<double>;

Pieces sum(const Operands& operands, double sign) {
  return combine(
      operands, false,
      [sign](const Lines& l, double) -> std::optional<Line> {
        return Line{l[0].slope + sign * l[1].slope, l[0].offset + sign * l[1].offset};
      },
      [sign](const Values& v) { return v[0] + sign * v[1]; });
}

Pieces product(const Operands& operands) {
  return combine(
      operands, false,
      [](const Lines& l, double) -> std::optional<Line> {
        if (l[0].slope != 0 && l[1].slope != 0) return std::nullopt;
        return Line{l[0].slope * l[1].offset + l[0].offset * l[1].slope, l[0].offset * l[1].offset};
      },
      [](const Values& v) { return v[0] * v[1]; });
}

Pieces quotient(const Operands& operands) {
  return combine(
      operands, false,
      [](const Lines& l, double) -> std::optional<Line> {
        if (l[1].slope != 0 || l[1].offset == 0) return std::nullopt;
        return Line{l[0].slope / l[1].offset, l[0].offset / l[1].offset};
      },
      [](const Values& v) { return v[0] / v[1]; });
}

// One of the two operands, by a comparison of their values.
template <typename TakesFirst>
Pieces either(const Operands& operands, TakesFirst takes_first) {
  return combine(
      operands, true,
      [&](const Lines& l, double x) -> std::optional<Line> { return takes_first(l[0](x), l[1](x)) ? l[0] : l[1]; },
      [&](const Values& v) {
        if (std::isnan(v[0]) || std::isnan(v[1])) return std::nan("");
        return takes_first(v[0], v[1]) ? v[0] : v[1];
      });
}
Pieces maximum(const Operands& operands) {
  return either(operands, [](double a, double b) { return a >= b; });
}
Pieces minimum(const Operands& operands) {
  return either(operands, [](double a, double b) { return a <= b; });
}

template <typename Holds>
Pieces compare(const Operands& operands, Holds holds) {
  return combine(
      operands, true,
      [&](const Lines& l, double x) -> std::optional<Line> {
        return Line{0, holds(l[0](x), l[1](x)) ? 1.0 : 0.0};
      },
      [&](const Values& v) { return holds(v[0], v[1]) ? 1.0 : 0.0; });
}

Pieces choose(const Operands& operands) {
  return combine(
      operands, false, [](const Lines& l, double) -> std::optional<Line> { return l[0].offset != 0 ? l[1] : l[2]; },
      [](const Values& v) { return v[0] != 0 ? v[1] : v[2]; });
}

}  // namespace

/// What a formula is of functions that are linear in pieces: another one, or none.
struct Bent {
  Pieces pieces;
  static Bent constant(double value) { return {line(0, value)}; }
};

template <typename F, typename... Rest>
static Bent of(F f, const Bent& first, const Rest&... rest) {
  if (!(first.pieces && ... && rest.pieces)) return {};
  return {f(Operands{*first.pieces, *rest.pieces...})};
}

// NOLINTBEGIN(readability-identifier-naming): the vocabulary's names
static Bent Add(const Bent& x, const Bent& y) {
  return of([](const Operands& o) { return sum(o, 1); }, x, y);
}
static Bent Sub(const Bent& x, const Bent& y) {
  return of([](const Operands& o) { return sum(o, -1); }, x, y);
}
static Bent Mul(const Bent& x, const Bent& y) { return of(product, x, y); }
static Bent MulAdd(const Bent& x, const Bent& y, const Bent& z) { return Add(Mul(x, y), z); }
static Bent Neg(const Bent& x) { return Mul(x, Bent::constant(-1)); }
static Bent Div(const Bent& x, const Bent& y) { return of(quotient, x, y); }
static Bent Quotient(const Bent& x, const Bent& y) { return Div(x, y); }
static Bent MaxNan(const Bent& x, const Bent& y) { return of(maximum, x, y); }
static Bent MinNan(const Bent& x, const Bent& y) { return of(minimum, x, y); }
static Bent Abs(const Bent& x) { return MaxNan(x, Neg(x)); }
// A limit is a constant, and none where it is infinite; what is not finite is of no piece.
static bool is_endless(const Bent& limit) { return limit.pieces && std::isinf(limit.pieces->lines.front().offset); }
static Bent Gt(const Bent& x, const Bent& y) {
  if (is_endless(x) || is_endless(y)) return {};
  return of([](const Operands& o) { return compare(o, std::greater<>()); }, x, y);
}
static Bent Ge(const Bent& x, const Bent& y) {
  return of([](const Operands& o) { return compare(o, std::greater_equal<>()); }, x, y);
}
static Bent Eq(const Bent& x, const Bent& y) {
  return of([](const Operands& o) { return compare(o, std::equal_to<>()); }, x, y);
}
// Conditions are 0 or 1.
static Bent Xor(const Bent& x, const Bent& y) {
  return of([](const Operands& o) { return compare(o, std::not_equal_to<>()); }, x, y);
}
static Bent Holds(const Bent& x) { return Xor(x, Bent::constant(0)); }
static Bent Not(const Bent& x) { return Sub(Bent::constant(1), x); }
static Bent And(const Bent& x, const Bent& y) { return Mul(x, y); }
static Bent Or(const Bent& x, const Bent& y) { return MaxNan(x, y); }
static Bent Select(const Bent& condition, const Bent& x, const Bent& y) { return of(choose, condition, x, y); }
static Bent AtLeast(const Bent& limit, const Bent& x) { return is_endless(limit) ? x : MaxNan(limit, x); }
static Bent AtMost(const Bent& limit, const Bent& x) { return is_endless(limit) ? x : MinNan(limit, x); }

// What bends everywhere, or jumps without end.
// clang-format off
static Bent Sqrt(const Bent& /*x*/) { return {}; }
static Bent Exp(const Bent& /*x*/) { return {}; }
static Bent Exp2(const Bent& /*x*/) { return {}; }
static Bent Expm1(const Bent& /*x*/) { return {}; }
static Bent Log(const Bent& /*x*/) { return {}; }
static Bent Log2(const Bent& /*x*/) { return {}; }
static Bent Log10(const Bent& /*x*/) { return {}; }
static Bent Log1p(const Bent& /*x*/) { return {}; }
static Bent Sigmoid(const Bent& /*x*/) { return {}; }
static Bent Silu(const Bent& /*x*/) { return {}; }
static Bent Tanh(const Bent& /*x*/) { return {}; }
static Bent Erf(const Bent& /*x*/) { return {}; }
static Bent Erfc(const Bent& /*x*/) { return {}; }
static Bent Sin(const Bent& /*x*/) { return {}; }
static Bent Cos(const Bent& /*x*/) { return {}; }
static Bent Tan(const Bent& /*x*/) { return {}; }
static Bent Asin(const Bent& /*x*/) { return {}; }
static Bent Acos(const Bent& /*x*/) { return {}; }
static Bent Atan(const Bent& /*x*/) { return {}; }
static Bent Sinh(const Bent& /*x*/) { return {}; }
static Bent Cosh(const Bent& /*x*/) { return {}; }
static Bent Asinh(const Bent& /*x*/) { return {}; }
static Bent Acosh(const Bent& /*x*/) { return {}; }
static Bent Atanh(const Bent& /*x*/) { return {}; }
static Bent RoundDown(const Bent& /*x*/) { return {}; }
static Bent RoundUp(const Bent& /*x*/) { return {}; }
static Bent RoundToZero(const Bent& /*x*/) { return {}; }
static Bent RoundToEven(const Bent& /*x*/) { return {}; }
static Bent Atan2(const Bent& /*x*/, const Bent& /*y*/) { return {}; }
static Bent Pow(const Bent& /*x*/, const Bent& /*y*/) { return {}; }
static Bent Fmod(const Bent& /*x*/, const Bent& /*y*/) { return {}; }
static Bent Remainder(const Bent& /*x*/, const Bent& /*y*/) { return {}; }
static Bent FloorDivide(const Bent& /*x*/, const Bent& /*y*/) { return {}; }
// clang-format on
#define HETNN_WORD_1(word) \
  static Bent word(const Bent& /*x*/) { return {}; }
#define HETNN_WORD_2(word) \
  static Bent word(const Bent& /*x*/, const Bent& /*y*/) { return {}; }
#define HETNN_SPECIAL(name, word, operands, ...) HETNN_WORD_##operands(word)
#include "hetnn/ops/elementwise/formulas.inc"
#undef HETNN_WORD_1
#undef HETNN_WORD_2
// NOLINTEND(readability-identifier-naming)

namespace {

// What a call is of functions, by its formula.
Pieces of_formula(ops::Function function, const ops::Call* call, const Operands& in) {
  Bent constants[2];
  const ops::FunctionDef& def = ops::function_def(function);
  for (size_t k = 0; k < static_cast<size_t>(def.constant_count()); ++k)
    constants[k] = Bent::constant(call ? call->real(def.constants[k]) : 0);
  return ops::apply(function, Bent{in.front()}, Bent{in.back()}, constants[0], constants[1]).pieces;
}

// Whether it has pieces of a line, the other operands being constant.
bool has_pieces(ops::Function function) {
  static const std::vector<bool> table = [] {
    std::vector<bool> out;
    for (size_t k = 0; k < ops::functions().size(); ++k) {
      const auto each = static_cast<ops::Function>(k);
      const PiecewiseLinear x = line(1, 0), one = line(0, 1);
      out.push_back(of_formula(each, nullptr, {x, one}) || of_formula(each, nullptr, {one, x}));
    }
    return out;
  }();
  return table[static_cast<size_t>(function)];
}

class Reader {
 public:
  explicit Reader(const ir::Value& x) : x_(x) {}

  Pieces read(const ir::Value& y, size_t index) {
    nodes_ = 0;
    index_ = index;
    return visit(y);
  }
  /// The axis along which some constant varies, or -1.
  int axis() const { return axis_; }

 private:
  Pieces visit(const ir::Value& y) {
    if (&y == &x_) return line(1, 0);
    const ir::Node* node = y.producer();
    if (!node || ++nodes_ > kMostNodes) return std::nullopt;
    if (node->is_constant()) return constant(*node);
    if (!can_be_followed(*node)) return std::nullopt;
    Operands operands;
    for (const ir::Value* input : node->inputs()) {
      Pieces operand = visit(*input);
      if (!operand) return std::nullopt;
      operands.push_back(std::move(*operand));
    }
    if (const auto function = ops::called_function(node->call())) return of_formula(*function, &node->call(), operands);
    if (const auto predicate = ops::predicate_from_name(node->op().name))
      return ops::apply(*predicate, Bent{operands.front()}, Bent{operands.back()}).pieces;
    return choose(operands);
  }

  Pieces constant(const ir::Node& node) {
    const Tensor& tensor = node.tensor("value");
    auto known = constants_.find(&node);
    if (known == constants_.end()) {
      std::vector<double> values;
      if (const auto one = single_value(tensor)) {
        if (tensor.rank() <= x_.rank()) values = {*one};
      } else if (auto found = along_one_axis(tensor, x_.shape()); found && (axis_ < 0 || axis_ == found->axis)) {
        axis_ = found->axis;
        values = std::move(found->values);
      }
      known = constants_.emplace(&node, std::move(values)).first;
    }
    const std::vector<double>& values = known->second;
    if (values.empty()) return std::nullopt;
    const double value = values[values.size() == 1 ? 0 : index_];
    return std::isfinite(value) ? std::optional(line(0, value)) : std::nullopt;
  }

  const ir::Value& x_;
  std::map<const ir::Node*, std::vector<double>> constants_;
  int axis_ = -1;
  size_t index_ = 0;
  int nodes_ = 0;
};

}  // namespace

bool PiecewiseLinear::continuous(double roundings) const {
  for (size_t k = 0; k < knots.size(); ++k) {
    const Line &left = lines[k], &right = lines[k + 1];
    const double t = knots[k], most = std::max({std::abs(left.slope * t), std::abs(left.offset),
                                                std::abs(right.slope * t), std::abs(right.offset)});
    if (std::abs(left(t) - right(t)) > roundings * most || std::abs(left(t) - at[k]) > roundings * most) return false;
  }
  return true;
}

bool can_be_followed(const ir::Node& node) {
  // Operands along the channels do not lie as others do.
  if (node.op().has(ops::Trait::channelwise)) return false;
  const auto function = ops::called_function(node.call());
  return function ? has_pieces(*function) : ops::predicate_from_name(node.op().name) || node.op().name == "where";
}

std::optional<AxisFunctions> as_functions(const ir::Value& y, const ir::Value& x) {
  Reader reader(x);
  AxisFunctions out;
  const auto add = [&](size_t index) {
    std::optional<PiecewiseLinear> f = reader.read(y, index);
    if (f) out.each.push_back(std::move(*f));
    return f.has_value();
  };
  if (!add(0)) return std::nullopt;
  if (reader.axis() < 0) return out;
  out.axis = reader.axis();
  const auto count = static_cast<size_t>(x.shape()[static_cast<size_t>(out.axis)].value());
  for (size_t k = 1; k < count; ++k) {
    if (!add(k)) return std::nullopt;
  }
  return out;
}

}  // namespace hetnn::passes
