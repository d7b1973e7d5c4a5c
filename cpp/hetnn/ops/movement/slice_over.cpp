// slice_over: ranges of axes whose bounds, axes and steps inputs hold.
#include <algorithm>

#include "hetnn/ops/late.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const std::vector<int64_t> starts = values_as<int64_t>(e.input(1)), ends = values_as<int64_t>(e.input(2));
  std::vector<int64_t> axes = axes_of(e, 3, x.rank());
  if (!e.has(3)) {
    for (size_t k = 0; k < starts.size(); ++k) axes.push_back(static_cast<int64_t>(k));
  }
  const std::vector<int64_t> steps = e.has(4) ? values_as<int64_t>(e.input(4)) : std::vector<int64_t>(starts.size(), 1);
  if (starts.size() != ends.size() || starts.size() != axes.size() || starts.size() != steps.size() ||
      starts.size() > x.shape.size()) {
    fail(e.call, "slice_over_c2",
         text("starts, ends, axes and steps must be of one length, at most ", x.rank(), "; got ", starts.size(), ", ",
              ends.size(), ", ", axes.size(), " and ", steps.size(), "."));
  }
  std::vector<int64_t> shape(x.shape.begin(), x.shape.end());
  Strides strides = strides_of(x.shape);
  int64_t first = 0;
  for (size_t k = 0; k < starts.size(); ++k) {
    const auto axis = static_cast<size_t>(axes[k]);
    const int64_t size = shape[axis], step = steps[k];
    if (step == 0 || step == INT64_MIN) fail(e.call, "slice_over_c3", text("a step must not be ", step, "."));
    const auto within = [&](int64_t at, int64_t least, int64_t most) {
      return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, least, most);
    };
    // Backwards it begins at the first element where that lies before it.
    const int64_t begin = step > 0 ? within(starts[k], 0, size) : std::max<int64_t>(within(starts[k], -1, size - 1), 0);
    const int64_t span =
        step > 0 ? within(ends[k], 0, size) - begin : std::min(begin, size - 1) - within(ends[k], -1, size - 1);
    const int64_t pace = std::abs(step);
    shape[axis] = span > 0 ? (span - 1) / pace + 1 : 0;
    if (shape[axis] > 0) first += begin * strides[axis];
    strides[axis] *= shape[axis] > 1 ? step : 1;
  }
  copy_strided(x, first, strides, late_output(e, std::move(shape)));
}

}  // namespace

OpDef define_slice_over() {
  return {
      .name = "slice_over",
      .doc =
          "Every step-th index from start up or down to end along axes, "
          "with bounds that are known at run time; "
          "negative ones count from the back.",
      .inputs = {{"x", "any shape"},
                 {"starts", "integers"},
                 {"ends", "integers"},
                 {"axes", "integers; absent: the first ones", true},
                 {"steps", "integers; absent: 1", true}},
      .attrs = {sizes_attr()},
      .traits = static_cast<uint32_t>(Trait::movement),
      .infer = infer_late,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"slice_over(f32[5,7], i64[2] {1, -1}, i64[2] {4, 0}, i64[2] {0, -1}, i64[2] {1, -2}) {sizes = [3,3]}",
                  "slice_over(f32[5,7], i64[1] {1}, i64[1] {100}, _, _) {sizes = [4,7]}"}};
}

}  // namespace hetnn::ops
