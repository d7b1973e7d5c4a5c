// choose: one of two values that may differ in shape.
#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/late.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &c = call.input(0), &a = call.input(1), &b = call.input(2);
  if (c.dtype != DType::boolean || elements(c.shape) != Dim(1)) {
    fail(call, "choose_c1", text("condition must be one bool; got ", to_string(c), "."));
  }
  if (a.dtype != b.dtype || a.rank() != b.rank()) {
    fail(call, "choose_c2",
         text("a and b must have one element type and rank; got ", to_string(a), " and ", to_string(b), "."));
  }
  return {{a.dtype, call.integers("sizes")}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(e.input(0).values<bool>()[0] ? 1 : 2);
  const Result y = late_output(e, {x.shape.begin(), x.shape.end()});
  std::copy_n(x.data, x.elems() * dtype_bytes(x.dtype), y.data);
}

}  // namespace

OpDef define_choose() {
  return {.name = "choose",
          .doc = "a where the condition holds, else b: whole values, whose shapes may differ.",
          .inputs = {{"condition", "one bool"}, {"a", "any shape"}, {"b", "of a's element type and rank"}},
          .attrs = {sizes_attr()},
          .traits = static_cast<uint32_t>(Trait::control),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"choose(bool[] {1}, f32[2,3], f32[4,1]) {sizes = [a,b]}",
                      "choose(bool[1] {0}, i64[3], i64[n]) {sizes = [a]}"}};
}

}  // namespace hetnn::ops
