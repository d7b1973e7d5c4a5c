// unit_axes: axes of one element added or dropped, where an input says.
#include <algorithm>

#include "hetnn/ops/late/late.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const bool adds = e.call.flag("add");
  const auto rank = static_cast<int64_t>(e.call.integers("sizes").size());
  std::vector<int64_t> axes = axes_of(e, 1, adds ? rank : x.rank());
  std::sort(axes.begin(), axes.end());
  std::vector<Dim> shape(x.shape.begin(), x.shape.end());
  if (adds) {
    for (const int64_t axis : axes) {
      if (axis > static_cast<int64_t>(shape.size())) fail(e.call, "unit_axes_c2", text("there is no axis ", axis, "."));
      shape.insert(shape.begin() + axis, 1);
    }
  } else {
    for (size_t k = axes.size(); k-- > 0;) {
      if (shape[static_cast<size_t>(axes[k])] != Dim(1)) {
        fail(e.call, "unit_axes_c3", text("axis ", axes[k], " of ", to_string(shape), " is not 1."));
      }
      shape.erase(shape.begin() + axes[k]);
    }
  }
  evaluate_as(e, "reshape", {{"shape", shape}});
}

}  // namespace

OpDef define_unit_axes() {
  return {.name = "unit_axes",
          .doc =
              "The same elements with axes of one element added, or dropped, "
              "that are known at run time.",
          .inputs = {{"x", "any shape"}, {"axes", "integers: of the result where they are added, else of x"}},
          .attrs = {{"add", AttrKind::boolean, true, "whether they are added"}, sizes_attr()},
          .traits = static_cast<uint32_t>(Trait::movement),
          .infer = infer_late,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"unit_axes(f32[2,3], i64[1] {-1}) {sizes = [2,3,1]}",
                      "unit_axes(f32[2,1,3], i64[1] {1}) {add = false, sizes = [2,3]}"}};
}

}  // namespace hetnn::ops
