// split_over: one of the parts of an axis whose sizes an input holds.
#include <numeric>

#include "hetnn/ops/late.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  check_integers(call, 1);
  const Type& x = call.input(0);
  if (x.shape.empty()) fail(call, "split_over_c1", "the input has rank 0, so there is no axis to split. Reshape it.");
  std::vector<Dim> shape = x.shape;
  shape[static_cast<size_t>(axis_of(call, call.integer("axis"), x.rank()))] = call.integer("size");
  if (const int64_t index = fixed_integer(call, "index"); index < 0) {
    fail(call, "split_over_c2", text("index must be at least 0; got ", index, "."));
  }
  return {{x.dtype, shape, x.quant}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), x.rank()));
  const std::vector<int64_t> parts = values_as<int64_t>(e.input(1));
  check_parts(e, "split_over_c3", parts, x.shape[axis]);
  const int64_t index = fixed_integer(e.call, "index");
  if (index >= static_cast<int64_t>(parts.size())) {
    fail(e.call, "split_over_c2", text("index ", index, " of ", parts.size(), " parts is none."));
  }
  const auto own = parts.begin() + index;
  const Strides strides = strides_of(x.shape);
  std::vector<int64_t> shape(x.shape.begin(), x.shape.end());
  shape[axis] = *own;
  define(e, "size", *own);
  const int64_t first = *own == 0 ? 0 : std::accumulate(parts.begin(), own, int64_t{0}) * strides[axis];
  copy_strided(x, first, strides, e.output(0, std::move(shape)));
}

}  // namespace

OpDef define_split_over() {
  return {.name = "split_over",
          .doc = "One of the parts of an axis, whose sizes are known at run time and add up to the axis.",
          .inputs = {{"x", "rank 1 or more"}, {"parts", "integers: the size of each part"}},
          .attrs = {{"axis", AttrKind::integer, Dim(0), "the axis"},
                    {"index", AttrKind::integer, Dim(0), "which part"},
                    found_size("size", "the part's size")},
          .traits = static_cast<uint32_t>(Trait::movement),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"split_over(f32[2,5], i64[2] {4, 1}) {axis = 1, index = 1, size = 1}",
                      "split_over(f32[7,n], i64[3] {1, 4, 2}) {index = 1, size = part}"}};
}

}  // namespace hetnn::ops
