// Special functions of f32: series in double that have the digits of f32 and some more, where those of f64 take
// iterations.
#include "hetnn/ops/special/functions.h"
#include "hetnn/ops/special/series.h"

namespace hetnn::ops::special {

#define HETNN_SINGLE(name, Series) \
  float name(float x) { return static_cast<float>(series::Series(static_cast<double>(x))); }
HETNN_SINGLE(lgamma, SingleLgamma)
HETNN_SINGLE(erfinv, SingleErfinv)
HETNN_SINGLE(ndtri, SingleNdtri)
HETNN_SINGLE(erfcx, SingleErfcx)
HETNN_SINGLE(i0, SingleI0)
HETNN_SINGLE(i1, SingleI1)
HETNN_SINGLE(i0e, SingleI0e)
HETNN_SINGLE(i1e, SingleI1e)
#undef HETNN_SINGLE

float digamma(float x) {
  double wide = x;
  if (wide == 0) return std::copysign(std::numeric_limits<float>::infinity(), -x);
  double reflected = 0;
  if (wide < 0) {
    if (wide == std::trunc(wide)) return NAN;
    reflected = kPi / std::tan(kPi * (wide - std::trunc(wide)));
    wide = 1 - wide;
  }
  // 1 / x + ... + 1 / (x + 5) as one quotient, then the asymptotic series above 6.
  double over = 0, under = 1;
  if (wide < 6) {
    for (int k = 0; k < 6; ++k, wide += 1) {
      over = over * wide + under;
      under *= wide;
    }
  }
  const double z = 1 / wide, square = z * z;
  const double series =
      square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 - square / 132))));
  return static_cast<float>(std::log(wide) - 0.5 * z - series - over / under - reflected);
}

}  // namespace hetnn::ops::special
