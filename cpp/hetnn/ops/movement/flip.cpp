// flip: axes from end to start.
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<int> flipped_axes(const Call& call) {
  std::vector<int> out;
  for (const Dim& axis : call.integers("axes")) out.push_back(axis_of(call, axis, call.input(0).rank()));
  return out;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  Strides strides = strides_of(x.shape);
  int64_t first = 0;
  for (const int axis : flipped_axes(e.call)) {
    if (x.rank() == 0) continue;
    int64_t& stride = strides[static_cast<size_t>(axis)];
    first += (x.shape[static_cast<size_t>(axis)] - 1) * stride;
    stride = -stride;
  }
  copy_strided(x, first, strides, e.output());
}

}  // namespace

OpDef define_flip() {
  return {.name = "flip",
          .doc = "The same elements with the given axes from end to start.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"axes", AttrKind::integers, std::nullopt, "the axes"}},
          .traits = static_cast<uint32_t>(Trait::movement),
          .torch = {{"aten.flip.default", "x axes"}},
          .infer =
              [](const Call& call) {
                flipped_axes(call);
                return same_as_input(call);
              },
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"flip(f32[2,5,3]) {axes = [1]}", "flip(f32[n,4]) {axes = [0,-1]}", "flip(i64[6]) {axes = [0]}"}};
}

}  // namespace hetnn::ops
