// exp of a row of doubles, as softmax and attention need it.
#pragma once

#include <span>

namespace hetnn::ops {

/// Replaces every x of a row by exp(x - largest) and returns the sum. Not `exact`, as suits all but f64, the relative
/// error is below 1e-13 and what is below 1e-303 may become that.
double exp_row(std::span<double> row, double largest, bool exact);

/// The largest of a row that is not empty; any value where one is NaN, which its difference to every x turns to NaN.
double largest_of(std::span<const double> row);
}  // namespace hetnn::ops
