// logcumsumexp: logarithms of the sums of the exponentials of all elements up to each.
#include <cmath>
#include <limits>

#include "hetnn/ops/scan/scan.h"

namespace hetnn::ops {
namespace {

// log(e^a + e^b) without overflow.
double join(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
}

void meaning(const Evaluation& e) {
  visit_wide_reals(e.input(0).dtype, [&](auto zero) {
    using T = decltype(zero);
    scan<T>(e, -std::numeric_limits<double>::infinity(),
            [](double so_far, T x) { return join(so_far, static_cast<double>(x)); });
  });
}

}  // namespace

OpDef define_logcumsumexp() {
  OpDef def = scan_op({.name = "logcumsumexp",
                       .doc = "Along an axis: y[k] = log(exp(x[0]) + ... + exp(x[k])).",
                       .meaning = meaning,
                       .tolerance = 1e-5,
                       .samples = {"logcumsumexp(f32[2,5,3]) {axis = 1}", "logcumsumexp(f32[n,4])"}});
  def.infer = [](const Call& call) {
    if (!is_real(call.input(0)))
      fail(call, "logcumsumexp_c1", text("its input must be real; got ", to_string(call.input(0)), ". Cast it."));
    axis_of(call, call.integer("axis"), call.input(0).rank());
    return std::vector<Type>{{call.input(0).dtype, call.input(0).shape}};
  };
  return def;
}

}  // namespace hetnn::ops
