// cumsum: sums of all elements up to each.
#include "hetnn/ops/scan/scan.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  scan_sums(e, 0, [](auto so_far, auto x) { return so_far + x; });
}

}  // namespace

OpDef define_cumsum() {
  return scan_op({.name = "cumsum",
                  .doc = "Sums along an axis: y[k] = x[0] + ... + x[k].",
                  .meaning = meaning,
                  .tolerance = 1e-5,
                  .samples = {"cumsum(f32[2,5,3]) {axis = 1}", "cumsum(f32[n,4])", "cumsum(i64[6])",
                              "cumsum(f32[2,5]) {axis = -1, exclusive = true, reverse = true}",
                              "cumsum(f32[19,5]) {axis = 1}", "cumsum(f32[2,4,10]) {axis = 1, reverse = true}"}});
}

}  // namespace hetnn::ops
