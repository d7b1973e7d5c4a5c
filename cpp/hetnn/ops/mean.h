// The mean of many elements, rounded once.
#pragma once

#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

__extension__ using Int128 = __int128;

/// What the elements of a mean are summed in: reals and truth values in double, integers exactly.
template <typename T>
using MeanSum = std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, Int128, double>;

/// sum / count; integers are cut towards zero. InvalidModel (mean_c1) for integers when count is 0.
template <typename T>
T mean_of(const Call& call, MeanSum<T> sum, int64_t count) {
  if constexpr (std::is_same_v<MeanSum<T>, Int128>) {
    if (count == 0) {
      fail(call, "mean_c1",
           text("the mean of no integers is not an integer; got ", to_string(call.input(0)),
                ". Cast the input to f32, or give elements."));
    }
    return static_cast<T>(sum / count);
  } else {
    return static_cast<T>(sum / static_cast<double>(count));
  }
}

}  // namespace hetnn::ops
