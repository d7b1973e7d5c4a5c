// slice_at: a slice whose axes, bounds and steps are values.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// x of rank R; starts, ends, axes, steps [K] -> y [sizes].
std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  for (size_t k = 1; k < call.inputs.size(); ++k) {
    if (!call.has(k)) continue;
    const Type& given = call.input(k);
    if ((given.dtype != DType::i64 && given.dtype != DType::i32) || given.rank() != 1 ||
        given.shape != call.input(1).shape) {
      fail(call, "slice_at_c1",
           text("starts, ends, axes and steps must be i64 or i32 of rank 1 and one length; got ", to_string(given),
                " beside ", to_string(call.input(1)), "."));
    }
  }
  const std::vector<Dim>& sizes = call.integers("sizes");
  if (sizes.size() != x.shape.size()) {
    fail(call, "slice_at_c2",
         text("there must be a symbol for each of the ", x.rank(), " axes; got ", to_string(sizes), "."));
  }
  return {{x.dtype, sizes}};
}

std::vector<int64_t> integers(const View& view) {
  if (view.dtype == DType::i64) {
    const auto values = view.values<int64_t>();
    return {values.begin(), values.end()};
  }
  const auto values = view.values<int32_t>();
  return {values.begin(), values.end()};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const std::vector<int64_t> starts = integers(e.input(1)), ends = integers(e.input(2));
  const std::vector<int64_t> axes = e.has(3) ? integers(e.input(3)) : std::vector<int64_t>(),
                             steps = e.has(4) ? integers(e.input(4)) : std::vector<int64_t>(starts.size(), 1);
  if (axes.empty() && starts.size() > x.shape.size())
    fail(e.call, "slice_at_c3", text("there are ", starts.size(), " bounds for ", x.rank(), " axes."));
  std::vector<int64_t> y(x.shape.begin(), x.shape.end());
  Strides strides = strides_of(x.shape);
  std::vector<bool> seen(x.shape.size(), false);
  int64_t first = 0;
  for (size_t k = 0; k < starts.size(); ++k) {
    const auto axis = static_cast<size_t>(axes.empty() ? static_cast<int>(k) : axis_of(e.call, axes[k], x.rank()));
    if (x.shape.empty() || seen[axis] || steps[k] == 0) {
      fail(e.call, "slice_at_c4",
           text("axes must be there and differ, and steps must not be 0; got axis ", axis, ", step ", steps[k], "."));
    }
    seen[axis] = true;
    // A step backwards begins at the last index at most, and ends before the first.
    const int64_t size = x.shape[axis], least = steps[k] > 0 ? 0 : -1, most = steps[k] > 0 ? size : size - 1;
    const auto bound = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, least, most); };
    const int64_t begin = bound(starts[k]), end = bound(ends[k]), step = steps[k];
    const int64_t distance = step > 0 ? end - begin : begin - end;
    const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
    y[axis] = distance <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1;
    if (y[axis] > 0) first += begin * strides[axis];
    strides[axis] = y[axis] > 1 ? strides[axis] * step : 0;
  }
  define(e, "sizes", y);
  copy_strided(x, first, strides, e.output(0, y));
}

}  // namespace

OpDef define_slice_at() {
  return {.name = "slice_at",
          .doc =
              "Indices start, start + step, ... before end along axes that are values, as are their bounds; negative "
              "bounds count from the back, and what lies outside an axis is cut.",
          .inputs = {{"x", "any shape"},
                     {"starts", "i64 or i32 of rank 1: the first index"},
                     {"ends", "as many: one past the last"},
                     {"axes", "as many: the axes; absent: the first ones", true},
                     {"steps", "as many: distances of indices, not 0; absent: 1", true}},
          .attrs = {found_sizes("sizes", "a symbol for each axis of y")},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"slice_at(f32[4,n], i64[1] {-1}, i64[1] {-9}, i64[1] {0}, i64[1] {-2}) {sizes = [a,b]}",
                      "slice_at(i64[5], i32[1] {1}, i32[1] {4}) {sizes = [a]}"}};
}

}  // namespace hetnn::ops
