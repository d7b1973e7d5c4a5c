// slice: every step-th index of a range along one axis.
#include <algorithm>
#include <limits>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

constexpr int64_t kPastAnyEnd = int64_t{1} << 40;

// How much `count` elements take of an axis of `size`, which may have fewer.
Dim taken(int64_t count, const Dim& size) { return (size - count).never_negative() ? count : min(count, size); }

// Where a bound lies within [0, size]; negative integers count from the back.
Dim bound(const Dim& given, const Dim& size) {
  if (given.is_static()) {
    const int64_t at = given.value();
    if (size.is_static()) return std::clamp<int64_t>(at < 0 ? at + size.value() : at, 0, size.value());
    if (at >= kPastAnyEnd) return size;
    if (at <= -kPastAnyEnd) return 0;
    return at < 0 ? size - taken(-at, size) : taken(at, size);
  }
  return given == size ? size : (given - size).is_static() ? given : min(given, size);
}

bool is_far(int64_t at) { return at >= kPastAnyEnd || at <= -kPastAnyEnd; }

// The end of what lies between two integers along an axis of symbolic size, which may cross.
Dim end_between(int64_t start, int64_t end, const Dim& begin, const Dim& size) {
  if ((start < 0) == (end < 0)) return start > end ? begin : bound(end, size);
  if (start < 0) return is_far(start) || is_far(end) ? bound(end, size) : max(begin, bound(end, size));
  return is_far(start) || is_far(end) ? begin : begin + size - taken(start - end, size);
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
  const Dim start = call.integer("start"), end = call.integer("end");
  const int64_t step = fixed_integer(call, "step");
  if (call.flag("inside")) return {axis, start, end, step};
  const Dim begin = bound(start, size);
  const bool may_cross = start.is_static() && end.is_static() && !size.is_static();
  return {axis, begin, may_cross ? end_between(start.value(), end.value(), begin, size) : bound(end, size), step};
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

std::optional<Shape> seen(const Call& call, const Shape& strides) {
  const Range range = range_of(call);
  Shape out = strides;
  out[static_cast<size_t>(range.axis)] = out[static_cast<size_t>(range.axis)] * range.step;
  return out;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Range range = range_of(e.call);
  check_inside(e.call, range);
  const int64_t first = range.begin.value() * strides_of(x.shape)[static_cast<size_t>(range.axis)];
  copy_strided(x, first, seen_strides(e.call, x.shape), e.output());
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
          .seen = seen,
          .keeps_batch = keeps_batch_beside_axis,
          .constraints = {},
          .tolerance = 0,
          .samples = {"slice(f32[2,7,4]) {axis = 1, start = 1, end = 6, step = 2}",
                      "slice(f32[n,8]) {axis = -1, start = -3}", "slice(i64[3,h]) {axis = 0, end = 2}"}};
}

}  // namespace hetnn::ops
