// axes_last: axes that are values moved behind the others.
#include <algorithm>

#include "hetnn/base/convert.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// x [S0,...], axes [K] -> y [sizes], ones [R].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &axes = call.input(1);
  if ((axes.dtype != DType::i64 && axes.dtype != DType::i32) || axes.rank() != 1)
    fail(call, "axes_last_c1", text("axes must be i64 or i32 of rank 1; got ", to_string(axes), "."));
  const std::vector<Dim>& sizes = call.integers("sizes");
  if (sizes.size() != x.shape.size()) {
    fail(call, "axes_last_c2",
         text("there must be a symbol for each of the ", x.rank(), " axes; got ", to_string(sizes), "."));
  }
  return {{x.dtype, sizes}, {DType::i64, {Dim(x.rank())}}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  std::vector<bool> moved(x.shape.size(), false);
  visit_dtype(e.input(1).dtype, [&](auto zero) {
    for (const auto given : e.input(1).values<decltype(zero)>()) {
      const auto axis = static_cast<size_t>(axis_of(e.call, convert<int64_t>(given), x.rank()));
      if (x.shape.empty() || moved[axis])
        fail(e.call, "axes_last_c3", text("axes must be there and differ; got ", axis, " twice or of rank 0."));
      moved[axis] = true;
    }
  });
  const Strides from = strides_of(x.shape);
  std::vector<int64_t> y, ones(x.shape.begin(), x.shape.end());
  Strides strides;
  for (const bool last : {false, true}) {
    for (size_t axis = 0; axis < moved.size(); ++axis) {
      if (moved[axis] != last) continue;
      y.push_back(x.shape[axis]);
      strides.push_back(from[axis]);
      if (last) ones[axis] = 1;
    }
  }
  define(e, "sizes", y);
  copy_strided(x, 0, strides, e.output(0, y));
  std::ranges::copy(ones, e.output(1).values<int64_t>());
}

}  // namespace

OpDef define_axes_last() {
  return {.name = "axes_last",
          .doc =
              "x with the axes that a tensor names behind the others, each kind in its order, so that they can be "
              "reduced or left out; and the shape of x with 1 in their place.",
          .inputs = {{"x", "any shape"}, {"axes", "i64 or i32 of rank 1; negative ones count from the back"}},
          .attrs = {found_sizes("sizes", "a symbol for each axis of y")},
          .outputs = {"y", "ones"},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"axes_last(f32[2,3,n], i64[1] {0}) {sizes = [a,b,c]}",
                      "axes_last(i64[2,3,4], i32[2] {-1, 0}) {sizes = [a,b,c]}"}};
}

}  // namespace hetnn::ops
