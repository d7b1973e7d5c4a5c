// match_shape: a value whose sizes are others by name, and must be the same.
#include <algorithm>

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& shape = call.integers("shape");
  bool fits = shape.size() == x.shape.size();
  for (size_t k = 0; fits && k < shape.size(); ++k) {
    fits = shape[k] == x.shape[k] || !shape[k].is_static() || !x.shape[k].is_static();
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
  if (!std::ranges::equal(x.shape, y.shape))
    fail(e.call, "match_shape_c1", "x has another shape than it must have. Check the sizes that meet here.");
  std::copy_n(x.data, x.elems() * dtype_bytes(x.dtype), y.data);
}

}  // namespace

OpDef define_match_shape() {
  return {.name = "match_shape",
          .doc = "x, of which it is known that it has this shape; a run in which it has another ends.",
          .inputs = {{"x", "any shape"}},
          .attrs = {{"shape", AttrKind::integers, std::nullopt, "its shape"}},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"match_shape(f32[2,3]) {shape = [2,3]}", "match_shape(i64[n]) {shape = [n]}"}};
}

}  // namespace hetnn::ops
