// What keeps bounded functions in their interval: forms that hold in a range alone, and operands that are bounds.
#pragma once

#include <string_view>
#include <vector>

#include "hetnn/passes/rule.h"

namespace hetnn::passes::legal {

/// A rule that holds while no element of the root's first input is larger than `within`, which must be known of the
/// model (value_ranges.h). It keeps more digits than `instead_of`, which are not tried for a node where it does.
struct RangedRule {
  std::string_view rule;
  double (*within)(const Match&);
  std::vector<std::string_view> instead_of;
};
const std::vector<RangedRule>& ranged_rules();

/// No bound: the root is no maximum or minimum with a constant. Between values that go on, a + relu(b - a) may lose
/// what is small beside what is large; beside a constant it would leave the interval that the constant bounds.
bool has_no_bound(const Match& m);
inline constexpr Guard kNoBound = {"no operand of a maximum or minimum is a constant", has_no_bound};

}  // namespace hetnn::passes::legal
