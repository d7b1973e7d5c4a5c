// Activations chosen by `where`: sums of pieces without a choice, which devices have and rules know.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/piecewise_linear.h"

namespace hetnn::passes::canonical {
namespace {

// Constants of a model are as exact as its type, and what is computed from them loses a little more.
double few_roundings(DType dtype) {
  const double f32 = 4 * static_cast<double>(std::numeric_limits<float>::epsilon());
  return dtype == DType::f64 ? 4 * std::numeric_limits<double>::epsilon() : is_float(dtype) ? f32 : 0;
}

// As many knots in each: pieces are taken one by one for all channels.
bool alike(const AxisFunctions& functions) {
  return std::all_of(functions.each.begin(), functions.each.end(),
                     [&](const PiecewiseLinear& f) { return f.knots.size() == functions.each.front().knots.size(); });
}

// Drops the knots at which no function bends.
void straighten(AxisFunctions& functions) {
  for (size_t k = functions.each.front().knots.size(); k-- > 0;) {
    const bool straight = std::all_of(functions.each.begin(), functions.each.end(), [k](const PiecewiseLinear& f) {
      return f.lines[k] == f.lines[k + 1] && f.at[k] == f.lines[k](f.knots[k]);
    });
    if (!straight) continue;
    const auto at = static_cast<std::ptrdiff_t>(k);
    for (PiecewiseLinear& f : functions.each) {
      f.lines.erase(f.lines.begin() + at);
      f.knots.erase(f.knots.begin() + at);
      f.at.erase(f.at.begin() + at);
    }
  }
}

// x is the value closest to the choice, up the condition, of which the whole result is a function. Beyond a node that
// cannot be followed nothing is.
std::optional<std::pair<ir::Value*, AxisFunctions>> pieces_of(const Match& m) {
  ir::Value* y = m.root()->output();
  const ir::Node* node = m.node("c");
  while (node && can_be_followed(*node)) {
    const auto varying = std::find_if(node->inputs().begin(), node->inputs().end(), [](const ir::Value* input) {
      return !(input->producer() && input->producer()->is_constant());
    });
    if (varying == node->inputs().end()) break;
    if ((*varying)->type() == y->type()) {
      if (auto functions = as_functions(*y, **varying); functions && alike(*functions)) {
        straighten(*functions);
        return std::pair(*varying, std::move(*functions));
      }
    }
    node = (*varying)->producer();
  }
  return std::nullopt;
}

bool has_pieces(const Match& m) { return m.value("c")->producer() && pieces_of(m).has_value(); }

bool has_no_jump(const Match& m) {
  const auto found = pieces_of(m);
  const double roundings = few_roundings(m.root()->output()->dtype());
  return std::all_of(found->second.each.begin(), found->second.each.end(),
                     [&](const PiecewiseLinear& f) { return f.continuous(roundings); });
}

bool keeps_nan(const Match& m) {
  const auto found = pieces_of(m);
  return std::all_of(found->second.each.begin(), found->second.each.end(),
                     [](const PiecewiseLinear& f) { return std::isnan(f.of_nan); });
}

// Builds the sum: the piece around zero as it is, and what each other adds, which is exactly 0 around zero.
class Sum {
 public:
  Sum(Build& build, ir::Value* x, const AxisFunctions& functions) : build_(build), x_(x), functions_(functions) {}

  ir::Value* make() {
    const size_t last = functions_.each.front().knots.size(), zero = piece_around_zero();
    add_center(zero, last);
    for (size_t k = zero + 1; k <= last; ++k) add_right(k, last);
    for (size_t k = zero; k-- > 0;) add_left(k);
    const std::vector<double> offset = of_each([zero](const PiecewiseLinear& f) { return f.lines[zero].offset; });
    return !sum_ || all(offset, 0) ? sum_ : build_.add(sum_, constant(offset));
  }

 private:
  template <typename Get>
  std::vector<double> of_each(Get get) const {
    std::vector<double> values;
    for (const PiecewiseLinear& f : functions_.each) values.push_back(get(f));
    const bool one = std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); });
    return one ? std::vector<double>{values.front()} : values;
  }
  std::vector<double> knots(size_t k) const {
    return of_each([k](const PiecewiseLinear& f) { return f.knots[k]; });
  }
  std::vector<double> slopes(size_t k) const {
    return of_each([k](const PiecewiseLinear& f) { return f.lines[k].slope; });
  }
  std::vector<double> widths(size_t k) const {
    return of_each([k](const PiecewiseLinear& f) { return f.knots[k] - f.knots[k - 1]; });
  }

  ir::Value* constant(const std::vector<double>& values) {
    std::vector<int64_t> shape;
    if (values.size() > 1) {
      shape.assign(static_cast<size_t>(x_->rank() - functions_.axis), 1);
      shape.front() = static_cast<int64_t>(values.size());
    }
    return build_.constant(x_->dtype(), shape, values);
  }

  static bool all(const std::vector<double>& values, double value) {
    return std::all_of(values.begin(), values.end(), [value](double v) { return v == value; });
  }

  // The piece in which 0 lies in most channels.
  size_t piece_around_zero() const {
    std::vector<size_t> votes(functions_.each.front().lines.size());
    for (const PiecewiseLinear& f : functions_.each)
      ++votes[static_cast<size_t>(std::lower_bound(f.knots.begin(), f.knots.end(), 0.0) - f.knots.begin())];
    return static_cast<size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
  }

  void add(ir::Value* term, bool negative) {
    if (!sum_) {
      sum_ = negative ? build_.op("neg", {term}) : term;
    } else {
      sum_ = negative ? build_.sub(sum_, term) : build_.add(sum_, term);
    }
  }

  // slope * term, or what it takes away.
  void add_sloped(ir::Value* term, const std::vector<double>& slope, bool negative) {
    if (all(slope, 0)) return;
    if (all(slope, -1)) return add(term, !negative);
    add(all(slope, 1) ? term : build_.mul(term, constant(slope)), negative);
  }

  void add_center(size_t k, size_t last) {
    const std::vector<double> slope = slopes(k);
    if (all(slope, 0)) return;
    ir::Value* center = x_;
    if (k > 0) center = build_.op("maximum", {center, constant(knots(k - 1))});
    if (k < last) center = build_.op("minimum", {center, constant(knots(k))});
    add_sloped(center, slope, false);
  }

  void add_right(size_t k, size_t last) {
    const std::vector<double> slope = slopes(k), from = knots(k - 1);
    if (all(slope, 0)) return;
    ir::Value* beyond = build_.relu(all(from, 0) ? x_ : build_.sub(x_, constant(from)));
    if (k < last) beyond = build_.op("minimum", {beyond, constant(widths(k))});
    add_sloped(beyond, slope, false);
  }

  void add_left(size_t k) {
    const std::vector<double> slope = slopes(k), to = knots(k);
    if (all(slope, 0)) return;
    ir::Value* beyond = build_.relu(all(to, 0) ? build_.op("neg", {x_}) : build_.sub(constant(to), x_));
    if (k > 0) beyond = build_.op("minimum", {beyond, constant(widths(k))});
    add_sloped(beyond, slope, true);
  }

  Build& build_;
  ir::Value* x_;
  const AxisFunctions& functions_;
  ir::Value* sum_ = nullptr;
};

Rule pieces_from_where() {
  return {.name = "pieces_from_where",
          .equation =
              "c ? a : b = s0 x0 + o0, where x0 is x limited to the piece around 0, + s_k relu(x - t_k) for each "
              "piece to its right - s_k relu(t_k - x) for each to its left, up to the knot at its end",
          .pattern = op("where", {any("c"), any("a"), any("b")}),
          .guards = {kFloat,
                     {"the result is a function of one value x of its type, linear between knots, as many in every "
                      "channel",
                      has_pieces},
                     {"its pieces meet", has_no_jump},
                     {"NaN stays NaN: a comparison with it chooses a branch with x", keeps_nan}},
          .exactness = "within a few roundings, bit for bit around 0 where f is x there; NaN stays NaN",
          .rewrite = [](const Match& m, Build& build) {
            const auto found = pieces_of(m);
            return Sum(build, found->first, found->second).make();
          }};
}

}  // namespace

std::vector<Rule> piece_rules() { return {pieces_from_where()}; }

}  // namespace hetnn::passes::canonical
