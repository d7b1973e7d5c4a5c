// Sets of reals between two bounds, and the vocabulary of the elementwise formulas over them, rounded outwards.
#pragma once

#include <limits>

#include "hetnn/ops/elementwise/function.h"

namespace hetnn::passes {

/// What a value may be: a real from lo to hi, bounds included and perhaps infinite; none when lo is above hi.
struct Range {
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
  bool nan = true;  // or NaN

  /// A constant of a formula, which lanes hold as f32.
  static Range constant(double value);
  static Range none(bool nan) {
    return {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), nan};
  }
  bool empty() const { return !(lo <= hi); }
  /// The largest magnitude.
  double largest() const;
};

/// All that is in one or the other.
Range hull(const Range& a, const Range& b);

/// What a function of operands in these ranges may be, computed in f32 or more digits by any of its kernels.
Range range_of(ops::Function function, const Range& x, const Range& y, const Range& c0, const Range& c1);

/// The same values once they are rounded to a float type.
Range stored(const Range& range, DType dtype);

}  // namespace hetnn::passes
