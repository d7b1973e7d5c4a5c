// tile_over: repetition of the whole by counts that an input holds.
#include "hetnn/ops/late.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const std::vector<int64_t> repeats = values_as<int64_t>(e.input(1));
  if (repeats.size() != x.shape.size()) {
    fail(e.call, "tile_over_c2",
         text("repeats must hold a count for each of ", x.rank(), " axes; got ", repeats.size(), "."));
  }
  // Each axis as a pair, of which the first is repeated.
  std::vector<int64_t> shape, pairs;
  const Strides own = strides_of(x.shape);
  Strides strides;
  for (size_t k = 0; k < repeats.size(); ++k) {
    if (repeats[k] < 0 || (x.shape[k] > 0 && repeats[k] > INT32_MAX / x.shape[k])) {
      fail(e.call, "tile_over_c3", text("repeats must not be negative or so large; got ", repeats[k], "."));
    }
    shape.push_back(repeats[k] * x.shape[k]);
    pairs.insert(pairs.end(), {repeats[k], x.shape[k]});
    strides.insert(strides.end(), {0, own[k]});
  }
  Result y = late_output(e, std::move(shape));
  y.shape = pairs;
  copy_strided(x, 0, strides, y);
}

}  // namespace

OpDef define_tile_over() {
  return {.name = "tile_over",
          .doc = "x repeated along each axis by counts that are known at run time.",
          .inputs = {{"x", "any shape"}, {"repeats", "integers, one for each axis"}},
          .attrs = {sizes_attr()},
          .traits = static_cast<uint32_t>(Trait::movement),
          .infer = infer_late,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"tile_over(f32[2,3], i64[2] {2, 3}) {sizes = [4,9]}"}};
}

}  // namespace hetnn::ops
