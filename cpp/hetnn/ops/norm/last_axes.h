// Normalizations over the last axes: their number is an attribute, and parameters have those axes' shape.
#pragma once

#include "hetnn/ops/infer.h"

namespace hetnn::ops {

/// Checks x (real, of at least `axes` axes: `<op>_c1`) and the inputs from the second to before `end` (`<op>_c2`).
inline std::vector<Type> infer_over_last_axes(const Call& call, size_t end) {
  const Type& x = call.input(0);
  const int64_t axes = fixed_integer(call, "axes");
  if (axes < 1 || axes > x.rank() || !is_real(x))
    fail(call, text(call.op->name, "_c1"),
         text("x must be real and axes in [1, ", x.rank(), "]; got ", to_string(x), " and ", axes, "."));
  check_parameters(call, 1, end, Shape(x.shape.end() - axes, x.shape.end()), text(call.op->name, "_c2"));
  return {x};
}

/// How many elements are normalized together.
inline int64_t elems_together(const Evaluation& e) {
  int64_t out = 1;
  for (const int64_t dim : e.input(0).shape.last(static_cast<size_t>(fixed_integer(e.call, "axes")))) out *= dim;
  return out;
}

}  // namespace hetnn::ops
