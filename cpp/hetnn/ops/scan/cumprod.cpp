// cumprod: products of all elements up to each.
#include "hetnn/ops/scan/scan.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  scan_sums(e, 1, [](auto so_far, auto x) { return so_far * x; });
}

}  // namespace

OpDef define_cumprod() {
  return scan_op({.name = "cumprod",
                  .doc = "Products along an axis: y[k] = x[0] * ... * x[k].",
                  .meaning = meaning,
                  .tolerance = 1e-5,
                  .samples = {"cumprod(f32[2,5,3]) {axis = 1}", "cumprod(f32[n,4])", "cumprod(i64[6])"}});
}

}  // namespace hetnn::ops
