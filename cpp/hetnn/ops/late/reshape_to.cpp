// reshape_to: a shape that an input holds.
#include "hetnn/ops/late/late.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  std::vector<int64_t> shape = values_as<int64_t>(e.input(1));
  int64_t open = -1, rest = 1;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == 0 && !e.call.flag("allow_zero") && k < x.shape.size()) shape[k] = x.shape[k];
    if (shape[k] == -1 && open < 0) {
      open = static_cast<int64_t>(k);
    } else if (shape[k] < 0 || (shape[k] > 0 && rest > INT64_MAX / shape[k])) {
      fail(e.call, "reshape_to_c2", text("the shape holds ", shape[k], "; sizes are positive, and one may be -1."));
    } else {
      rest *= shape[k];
    }
  }
  if (open >= 0) shape[static_cast<size_t>(open)] = rest == 0 ? 0 : x.elems() / rest;
  evaluate_as(e, "reshape", {{"shape", std::vector<Dim>(shape.begin(), shape.end())}});
}

}  // namespace

OpDef define_reshape_to() {
  return {.name = "reshape_to",
          .doc =
              "The same elements in a shape that is known at run time: -1 "
              "is what is left, 0 the size of x there.",
          .inputs = {{"x", "any shape"}, {"shape", "integers"}},
          .attrs = {{"allow_zero", AttrKind::boolean, false, "whether 0 means no elements"}, sizes_attr()},
          .traits = static_cast<uint32_t>(Trait::movement),
          .infer = infer_late,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"reshape_to(f32[2,3,4], i64[3] {0, -1, 2}) {sizes = [2,6,2]}"}};
}

}  // namespace hetnn::ops
