// argmin: where the smallest element along an axis stands.
#include "hetnn/ops/order/arg_extreme.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  find_extremes(e, [](auto a, auto b) { return a < b; });
}

}  // namespace

OpDef define_argmin() {
  return arg_extreme(
      {.name = "argmin",
       .doc = "Where the smallest element along an axis stands, the first of equals; NaN before all.",
       .meaning = meaning,
       .samples = {"argmin(f32[2,5,3]) {axis = 1}", "argmin(f32[n,4]) {axis = -1, keepdim = true}", "argmin(i64[6])"}});
}

}  // namespace hetnn::ops
