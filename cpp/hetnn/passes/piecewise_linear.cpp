// Arithmetic of piecewise linear functions, operator by operator.
#include "hetnn/passes/piecewise_linear.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "hetnn/passes/numbers.h"

namespace hetnn::passes {
namespace {

using Function = PiecewiseLinear;
using Operands = std::vector<Function>;

// What people write has two or three pieces; reading stops here, so that it never costs much.
constexpr int kMostNodes = 64;
constexpr size_t kMostKnots = 16;

Function line(double slope, double offset) { return {{{slope, offset}}, {}, {}, slope == 0 ? offset : std::nan("")}; }

size_t piece_of(const Function& f, double x) {
  return static_cast<size_t>(std::lower_bound(f.knots.begin(), f.knots.end(), x) - f.knots.begin());
}

bool is_knot(const Function& f, size_t piece, double x) { return piece < f.knots.size() && f.knots[piece] == x; }

double value_at(const Function& f, double x) {
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
  for (const Function& f : operands) knots.insert(knots.end(), f.knots.begin(), f.knots.end());
  sort_knots(knots);
  if (!crossings) return knots;
  const Function &f = operands[0], &g = operands[1];
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
std::optional<Function> combine(const Operands& operands, bool crossings, OfLines of_lines, OfValues of_values) {
  Function out;
  out.knots = common_knots(operands, crossings);
  if (out.knots.size() > kMostKnots) return std::nullopt;
  bool linear = true;
  for_each_piece(out.knots, [&](double from, double to) {
    const double middle = inside(from, to);
    std::vector<Line> lines;
    for (const Function& f : operands) lines.push_back(f.lines[piece_of(f, middle)]);
    const std::optional<Line> result = of_lines(lines, middle);
    linear = linear && result && std::isfinite(result->slope) && std::isfinite(result->offset);
    if (result) out.lines.push_back(*result);
  });
  if (!linear) return std::nullopt;
  for (double knot : out.knots) {
    std::vector<double> values;
    for (const Function& f : operands) values.push_back(value_at(f, knot));
    out.at.push_back(of_values(values));
  }
  std::vector<double> of_nan;
  for (const Function& f : operands) of_nan.push_back(f.of_nan);
  out.of_nan = of_values(of_nan);
  return out;
}

using Lines = std::vector<Line>;
using Values = std::vector<double>;

std::optional<Function> sum(const Operands& operands, double sign) {
  return combine(
      operands, false,
      [sign](const Lines& l, double) -> std::optional<Line> {
        return Line{l[0].slope + sign * l[1].slope, l[0].offset + sign * l[1].offset};
      },
      [sign](const Values& v) { return v[0] + sign * v[1]; });
}

std::optional<Function> product(const Operands& operands) {
  return combine(
      operands, false,
      [](const Lines& l, double) -> std::optional<Line> {
        if (l[0].slope != 0 && l[1].slope != 0) return std::nullopt;
        return Line{l[0].slope * l[1].offset + l[0].offset * l[1].slope, l[0].offset * l[1].offset};
      },
      [](const Values& v) { return v[0] * v[1]; });
}

std::optional<Function> quotient(const Operands& operands) {
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
std::optional<Function> either(const Operands& operands, TakesFirst takes_first) {
  return combine(
      operands, true,
      [&](const Lines& l, double x) -> std::optional<Line> { return takes_first(l[0](x), l[1](x)) ? l[0] : l[1]; },
      [&](const Values& v) {
        if (std::isnan(v[0]) || std::isnan(v[1])) return std::nan("");
        return takes_first(v[0], v[1]) ? v[0] : v[1];
      });
}
std::optional<Function> maximum(const Operands& operands) {
  return either(operands, [](double a, double b) { return a >= b; });
}
std::optional<Function> minimum(const Operands& operands) {
  return either(operands, [](double a, double b) { return a <= b; });
}

template <typename Holds>
std::optional<Function> compare(const Operands& operands, Holds holds) {
  return combine(
      operands, true,
      [&](const Lines& l, double x) -> std::optional<Line> {
        return Line{0, holds(l[0](x), l[1](x)) ? 1.0 : 0.0};
      },
      [&](const Values& v) { return holds(v[0], v[1]) ? 1.0 : 0.0; });
}

std::optional<Function> choose(const Operands& operands) {
  return combine(
      operands, false, [](const Lines& l, double) -> std::optional<Line> { return l[0].offset != 0 ? l[1] : l[2]; },
      [](const Values& v) { return v[0] != 0 ? v[1] : v[2]; });
}

// Conditions are 0 or 1: a product is `and`, a maximum `or`.
using Meaning = std::optional<Function> (*)(const ir::Node&, const Operands&);
const std::map<std::string_view, Meaning>& meanings() {
  static const std::map<std::string_view, Meaning> table = {
      {"add", [](const ir::Node&, const Operands& o) { return sum(o, 1); }},
      {"sub", [](const ir::Node&, const Operands& o) { return sum(o, -1); }},
      {"mul", [](const ir::Node&, const Operands& o) { return product(o); }},
      {"div", [](const ir::Node&, const Operands& o) { return quotient(o); }},
      {"neg",
       [](const ir::Node&, const Operands& o) {
         return product({o[0], line(0, -1)});
       }},
      {"abs",
       [](const ir::Node&, const Operands& o) {
         const std::optional<Function> mirrored = product({o[0], line(0, -1)});
         return mirrored ? maximum({o[0], *mirrored}) : std::nullopt;
       }},
      {"sign",
       [](const ir::Node&, const Operands& o) {
         const Operands zero = {o[0], line(0, 0)};
         const std::optional<Function> above = compare(zero, std::greater<>()), below = compare(zero, std::less<>());
         return above && below ? sum({*above, *below}, -1) : std::nullopt;
       }},
      {"relu",
       [](const ir::Node&, const Operands& o) {
         return maximum({o[0], line(0, 0)});
       }},
      {"leaky_relu",
       [](const ir::Node& node, const Operands& o) {
         const std::optional<Function> sloped = product({o[0], line(0, node.real("negative_slope"))});
         const auto above = compare({o[0], line(0, 0)}, std::greater<>());
         return sloped && above ? choose({*above, o[0], *sloped}) : std::nullopt;
       }},
      {"clamp",
       [](const ir::Node& node, const Operands& o) {
         std::optional<Function> f = o[0];
         if (std::isfinite(node.real("min"))) f = maximum({*f, line(0, node.real("min"))});
         if (f && std::isfinite(node.real("max"))) f = minimum({*f, line(0, node.real("max"))});
         return f;
       }},
      {"maximum", [](const ir::Node&, const Operands& o) { return maximum(o); }},
      {"minimum", [](const ir::Node&, const Operands& o) { return minimum(o); }},
      {"gt", [](const ir::Node&, const Operands& o) { return compare(o, std::greater<>()); }},
      {"ge", [](const ir::Node&, const Operands& o) { return compare(o, std::greater_equal<>()); }},
      {"lt", [](const ir::Node&, const Operands& o) { return compare(o, std::less<>()); }},
      {"le", [](const ir::Node&, const Operands& o) { return compare(o, std::less_equal<>()); }},
      {"logical_and", [](const ir::Node&, const Operands& o) { return product(o); }},
      {"logical_or", [](const ir::Node&, const Operands& o) { return maximum(o); }},
      {"logical_not",
       [](const ir::Node&, const Operands& o) {
         return sum({line(0, 1), o[0]}, -1);
       }},
      {"where", [](const ir::Node&, const Operands& o) { return choose(o); }},
  };
  return table;
}

class Reader {
 public:
  explicit Reader(const ir::Value& x) : x_(x) {}

  std::optional<Function> read(const ir::Value& y, size_t index) {
    nodes_ = 0;
    index_ = index;
    return visit(y);
  }
  /// The axis along which some constant varies, or -1.
  int axis() const { return axis_; }

 private:
  std::optional<Function> visit(const ir::Value& y) {
    if (&y == &x_) return line(1, 0);
    const ir::Node* node = y.producer();
    if (!node || ++nodes_ > kMostNodes) return std::nullopt;
    if (node->is_constant()) return constant(*node);
    const auto meaning = meanings().find(node->op().name);
    if (meaning == meanings().end()) return std::nullopt;
    Operands operands;
    for (const ir::Value* input : node->inputs()) {
      std::optional<Function> operand = visit(*input);
      if (!operand) return std::nullopt;
      operands.push_back(std::move(*operand));
    }
    return meaning->second(*node, operands);
  }

  std::optional<Function> constant(const ir::Node& node) {
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

bool can_be_followed(const ir::Node& node) { return meanings().contains(node.op().name); }

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
