// cummin: the smallest element up to each, and where it stands.
#include "hetnn/ops/scan/scan.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  scan_extremes(e, [](auto a, auto b) { return a < b; });
}

}  // namespace

OpDef define_cummin() {
  return extreme_scan_op(
      {.name = "cummin",
       .doc = "The smallest of x[0] ... x[k] along an axis, NaN before all; indices: where, the last of equals.",
       .torch = {{"aten.cummin.default", "x axis"}},
       .meaning = meaning,
       .samples = {"cummin(f32[2,5,3]) {axis = 1}", "cummin(f32[n,4])"}});
}

}  // namespace hetnn::ops
