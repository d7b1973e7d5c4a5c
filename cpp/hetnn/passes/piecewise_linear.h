// Functions of one real that are linear between knots, read off the nodes that compute them.
#pragma once

#include <optional>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

struct Line {
  double slope, offset;
  double operator()(double x) const { return slope == 0 ? offset : slope * x + offset; }
  bool operator==(const Line&) const = default;
};

/// Linear between finitely many knots; at a knot it has a value of its own. Comparisons are functions to 0 and 1.
struct PiecewiseLinear {
  std::vector<Line> lines;    // from -inf to inf, one more than knots
  std::vector<double> knots;  // ascending
  std::vector<double> at;     // the value at each knot
  double of_nan = 0;          // the value of NaN, which is a number where a comparison chooses a branch without x

  /// Whether neighbouring lines meet, and meet the value at their knot, within `roundings` of the numbers that each is
  /// computed from.
  bool continuous(double roundings) const;
};

/// A function for each index of one axis of x; one function, where it is the same for all.
struct AxisFunctions {
  int axis = 0;
  std::vector<PiecewiseLinear> each;
};

/// Whether such functions of a node's inputs can be followed through it.
bool can_be_followed(const ir::Node& node);

/// `y` as functions of `x`: nullopt when other values than x and constants go in, when a node on the way is not
/// piecewise linear, or when constants vary along more than one axis of x.
std::optional<AxisFunctions> as_functions(const ir::Value& y, const ir::Value& x);

}  // namespace hetnn::passes
