// gather_elements: one element for every index, along an axis.
#include "hetnn/ops/scatter/elements.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &indices = call.input(1);
  check_indices(call);
  const int axis = axis_of(call, call.integer("axis"), x.rank());
  bool fits = x.rank() == indices.rank();
  for (int k = 0; fits && k < x.rank(); ++k) {
    const Dim &size = x.shape[static_cast<size_t>(k)], &of = indices.shape[static_cast<size_t>(k)];
    fits = k == axis || !size.is_static() || !of.is_static() || of.value() <= size.value();
  }
  if (!fits) {
    fail(call, "gather_elements_c2",
         text("indices must have x's rank and be no larger but along axis ", axis, "; got x ", to_string(x.shape),
              " and indices ", to_string(indices.shape), "."));
  }
  return {{x.dtype, indices.shape}};
}

void meaning(const Evaluation& e) {
  const View &x = e.input(0), &indices = e.input(1);
  const Result y = e.output();
  const int axis = axis_of(e.call, e.call.integer("axis"), x.rank());
  const auto at_axis = static_cast<size_t>(axis);
  const int64_t size = size_along(e.call, x), step = x.rank() == 0 ? 1 : strides_of(x.shape)[at_axis];
  const std::vector<int64_t> picked = positions_in(indices, size);
  visit_width(x.dtype, [&](auto zero) {
    using U = decltype(zero);
    const U* from = reinterpret_cast<const U*>(x.data);
    auto* to = reinterpret_cast<U*>(y.data);
    nest<2>(y.shape, {strides_of(y.shape), strides_across(x.shape, axis)},
            [&](int64_t at, int64_t lane) { to[at] = from[lane + picked[static_cast<size_t>(at)] * step]; });
  });
}

}  // namespace

OpDef define_gather_elements() {
  return {
      .name = "gather_elements",
      .doc = "One element for every index: of axis 1 of three, y[i,j,k] = x[i, indices[i,j,k], k].",
      .inputs = {{"x", "any shape"}, {"indices", "i64 or i32, of x's rank"}},
      .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
                {"from_end", AttrKind::boolean, true, "negative indices count from the back; else they are refused"}},
      .traits = static_cast<uint32_t>(Trait::movement),
      .onnx = {{"GatherElements", 11, "x indices axis"}},
      .infer = infer,
      .check = check_elements,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"gather_elements(f32[2,3], i64[2,2] {0, 2, 1, -1}) {axis = 1}",
                  "gather_elements(f32[4,2], i64[1,2] {3, 0})",
                  "gather_elements(f32[2,5,3], i32[2,1,3] {0, 4, -1, 2, 1, 3}) {axis = 1}"}};
}

}  // namespace hetnn::ops
