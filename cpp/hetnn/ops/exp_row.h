// exp of a row of doubles, as softmax and attention need it.
#pragma once

#include <span>

namespace hetnn::ops {

/// Replaces every x of a row by exp(x - largest), to 17 units in the last place: more than f32 keeps. `exact` is slower
/// and for f64. Returns the sum.
double exp_row(std::span<double> row, double largest, bool exact);

/// The largest of a row that is not empty; any value where one is NaN, which its difference to every x turns to NaN.
double largest_of(std::span<const double> row);
}  // namespace hetnn::ops
