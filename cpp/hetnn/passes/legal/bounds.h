// What keeps bounded functions in their interval: forms that hold in a range alone, and operands that are bounds.
#pragma once

#include <string_view>
#include <vector>

#include "hetnn/passes/rule.h"

namespace hetnn::passes::legal {

/// A rule that holds while no element of the root's inputs is larger than `within`, which must be known of the model
/// (value_ranges.h). Where it keeps more digits than `instead_of`, these are not tried for a node where it does.
struct RangedRule {
  std::string_view rule;
  double (*within)(const Match&);
  std::vector<std::string_view> instead_of;
};
const std::vector<RangedRule>& ranged_rules();

/// Of a PReLU: up to there x and its multiples by differences of slopes are finite.
double finite_products(const Match& m);
/// The same, of branches by depthwise convolutions: without bound where all slopes are above 1, as x - relu((1 - a) x)
/// is right of inf, too.
double branches_within(const Match& m);
/// The greatest finite number of a float type.
double greatest(DType dtype);

/// No bound: the root is no maximum or minimum with a constant. Between values that go on, a + relu(b - a) may lose
/// what is small beside what is large; beside a constant it would leave the interval that the constant bounds.
bool has_no_bound(const Match& m);
inline constexpr Guard kNoBound = {"no operand of a maximum or minimum is a constant", has_no_bound};

}  // namespace hetnn::passes::legal
