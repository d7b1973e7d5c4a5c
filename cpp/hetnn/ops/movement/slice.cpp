// slice: every step-th index of a range along one axis.
#include <algorithm>
#include <limits>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

// A bound counted from the back when it is a negative integer, and kept within [0, size] where that can be known.
Dim bound(const Dim& given, const Dim& size) {
  Dim at = given.is_static() && given.value() < 0 ? size + given : given;
  if (at.is_static() && size.is_static()) return std::clamp<int64_t>(at.value(), 0, size.value());
  if (at.is_static() && at.value() >= (int64_t{1} << 40)) return size;
  return at == size ? size : (at - size).is_static() || at == Dim(0) ? at : min(at, size);
}

struct Range {
  int axis;
  Dim begin, end;
  int64_t step;
};

Range range_of(const Call& call) {
  const Shape& x = call.input(0).shape;
  const int axis = axis_of(call, call.integer("axis"), call.input(0).rank());
  if (x.empty()) fail(call, "slice_c1", "the input has rank 0, so there is no axis to cut.");
  const Dim& size = x[static_cast<size_t>(axis)];
  if (call.flag("inside")) return {axis, call.integer("start"), call.integer("end"), fixed_integer(call, "step")};
  return {axis, bound(call.integer("start"), size), bound(call.integer("end"), size), fixed_integer(call, "step")};
}

// Bounds that were said to lie inside, where that can be seen.
void check_inside(const Call& call, const Range& range) {
  const Dim& size = call.input(0).shape[static_cast<size_t>(range.axis)];
  if (!range.begin.is_static() || !range.end.is_static() || !size.is_static()) return;
  const int64_t begin = range.begin.value(), end = range.end.value();
  if (begin >= 0 && end <= size.value()) return;
  fail(call, "slice_c3",
       text("start and end must lie in the axis, as the node says they do; got [", begin, ",", end, ") of ", size,
            ". Check the sizes, or leave 'inside' out."));
}

std::vector<Type> infer(const Call& call) {
  const Range range = range_of(call);
  if (range.step < 1) fail(call, "slice_c2", text("step must be positive; got ", range.step, "."));
  check_inside(call, range);
  Shape y = call.input(0).shape;
  const Dim length = ceil_div(range.end - range.begin, range.step);
  y[static_cast<size_t>(range.axis)] = length.is_static() ? Dim(std::max<int64_t>(length.value(), 0)) : length;
  return {{call.input(0).dtype, y}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Range range = range_of(e.call);
  Strides strides = strides_of(x.shape);
  int64_t& stride = strides[static_cast<size_t>(range.axis)];
  check_inside(e.call, range);
  const int64_t first = range.begin.value() * stride;
  stride *= range.step;
  copy_strided(x, first, strides, e.output());
}

}  // namespace

OpDef define_slice() {
  return {.name = "slice",
          .doc = "Indices start, start + step, ... below end along one axis; negative bounds count from the back.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
                    {"start", AttrKind::integer, Dim(0), "first index"},
                    {"end", AttrKind::integer, Dim(std::numeric_limits<int64_t>::max()), "one past the last index"},
                    {"step", AttrKind::integer, Dim(1), "distance of indices"},
                    {"inside", AttrKind::boolean, false,
                     "0 <= start <= end <= size is known of every size, so y has (end - start) / step entries"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .primitive = Primitive::slice,
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"slice(f32[2,7,4]) {axis = 1, start = 1, end = 6, step = 2}",
                      "slice(f32[n,8]) {axis = -1, start = -3}", "slice(i64[3,h]) {axis = 0, end = 2}"}};
}

}  // namespace hetnn::ops
