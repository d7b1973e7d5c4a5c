// match_shape: a value whose sizes are others by name, and must be the same.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& shape = call.integers("shape");
  bool fits = shape.size() == x.shape.size();
  for (size_t k = 0; fits && k < shape.size(); ++k) {
    fits = shape[k] == x.shape[k] || !shape[k].is_static() || !x.shape[k].is_static() ||
           (call.flag("repeats") && x.shape[k] == Dim(1));
  }
  if (!fits) {
    fail(call, "match_shape_c1",
         text("x must have the shape ", to_string(shape), "; got ", to_string(x), ". Check the sizes that meet here."));
  }
  return {{x.dtype, shape, x.quant}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  for (size_t k = 0; k < y.shape.size(); ++k) {
    if (x.shape[k] != y.shape[k] && !(e.call.flag("repeats") && x.shape[k] == 1))
      fail(e.call, "match_shape_c1", "x has another shape than it must have. Check the sizes that meet here.");
  }
  copy_strided(x, 0, broadcast_strides(x.shape, y.shape), y);
}

}  // namespace

OpDef define_match_shape() {
  return {.name = "match_shape",
          .doc = "x, of which it is known that it has this shape; a run in which it has another ends.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"shape", AttrKind::integers, std::nullopt, "its shape"},
                    {"repeats", AttrKind::boolean, false, "whether an axis of one element is repeated instead"}},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"match_shape(f32[2,3]) {shape = [2,3]}", "match_shape(i64[n]) {shape = [n]}",
                      "match_shape(f32[n,1]) {shape = [n,4], repeats = true}"}};
}

}  // namespace hetnn::ops
