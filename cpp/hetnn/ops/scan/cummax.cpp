// cummax: the largest element up to each, and where it stands.
#include "hetnn/ops/scan/scan.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  scan_extremes(e, [](auto a, auto b) { return a > b; });
}

}  // namespace

OpDef define_cummax() {
  return extreme_scan_op(
      {.name = "cummax",
       .doc = "The largest of x[0] ... x[k] along an axis, NaN before all; indices: where, the last of equals.",
       .torch = {{"aten.cummax.default", "x axis"}},
       .meaning = meaning,
       .samples = {"cummax(f32[2,5,3]) {axis = 1}", "cummax(f32[n,4])"}});
}

}  // namespace hetnn::ops
