// Special functions of f32 lanes by the series of ops/special in double, compiled once per instruction set.
#if defined(HETNN_KERNELS_SPECIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HETNN_KERNELS_SPECIAL_INL_H_
#undef HETNN_KERNELS_SPECIAL_INL_H_
#else
#define HETNN_KERNELS_SPECIAL_INL_H_
#endif

#include <numbers>

#include "hetnn/kernels/vector_functions-inl.h"
#include "hetnn/ops/special/functions.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {

#if !HETNN_LANES_BY_LIBRARY
namespace series {

using namespace arithmetic;
using hn::CopySign;
using V = VD;
constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = std::numbers::pi;

HWY_INLINE V Const(double value) { return Wide(value); }
HWY_INLINE V Log(V x) { return ScaledLog(x, 1, kLn2); }
HWY_INLINE V Exp(V x) { return hn::IfThenElse(Gt(x, Const(700)), Const(kInf), ExpOf(x)); }
HWY_INLINE V Sin(V x) { return SinOf(x, 0); }
HWY_INLINE V Cos(V x) { return SinOf(x, 1); }
HWY_INLINE V RoundToEven(V x) { return hn::Round(x); }
template <typename M, typename F, typename G>
HWY_INLINE V Choose(M first, F f, G g) {
  if (hn::AllFalse(DD(), first)) return g();
  return hn::AllTrue(DD(), first) ? f() : hn::IfThenElse(first, f(), g());
}

#define HETNN_SERIES_ATTR HWY_ATTR
#define HETNN_SERIES_FUNCTION inline HWY_NOINLINE
#include "hetnn/ops/special/series.inc"

}  // namespace series

#define HETNN_SERIES(Word, Series)                                        \
  inline HWY_NOINLINE VF Word(VF v) {                                     \
    return InDoubles([](VD x) HWY_ATTR { return series::Series(x); }, v); \
  }
// Sines of large numbers are the C library's.
#define HETNN_TURNING_SERIES(Word, Series, name)                                                                     \
  inline HWY_NOINLINE VF Word(VF v) {                                                                                \
    if (!AllBelow(v, kMostTurned)) return EachLane([](float each) HWY_ATTR { return ops::special::name(each); }, v); \
    return InDoubles([](VD x) HWY_ATTR { return series::Series(x); }, v);                                            \
  }
HETNN_SERIES(Lgamma, SingleLgamma)
HETNN_SERIES(Erfinv, SingleErfinv)
HETNN_SERIES(Ndtri, SingleNdtri)
HETNN_SERIES(Erfcx, SingleErfcx)
HETNN_SERIES(I0, SingleI0)
HETNN_SERIES(I1, SingleI1)
HETNN_SERIES(I0e, SingleI0e)
HETNN_SERIES(I1e, SingleI1e)
HETNN_TURNING_SERIES(BesselJ0, SeriesJ0, bessel_j0)
HETNN_TURNING_SERIES(BesselJ1, SeriesJ1, bessel_j1)
HETNN_TURNING_SERIES(BesselY0, SeriesY0, bessel_y0)
HETNN_TURNING_SERIES(BesselY1, SeriesY1, bessel_y1)
HETNN_SERIES(K0, SeriesK0)
HETNN_SERIES(K1, SeriesK1)
HETNN_SERIES(K0e, SeriesK0e)
HETNN_SERIES(K1e, SeriesK1e)
#undef HETNN_SERIES
#undef HETNN_TURNING_SERIES
#endif  // !HETNN_LANES_BY_LIBRARY

// Those that have no series here take a lane after another.
#define HETNN_LANES_1(name, Word)                                               \
  template <class Lanes>                                                        \
  HWY_NOINLINE Lanes Word(Lanes x) {                                            \
    return EachLane([](float v) HWY_ATTR { return ops::special::name(v); }, x); \
  }
#define HETNN_LANES_2(name, Word)                                                              \
  template <class Lanes>                                                                       \
  HWY_NOINLINE Lanes Word(Lanes x, Lanes y) {                                                  \
    return EachLane([](float a, float b) HWY_ATTR { return ops::special::name(a, b); }, x, y); \
  }
#define HETNN_SPECIAL(name, Word, operands, ...) HETNN_LANES_##operands(name, Word)
#include "hetnn/ops/elementwise/formulas.inc"
#undef HETNN_LANES_1
#undef HETNN_LANES_2

}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();
#endif  // HETNN_KERNELS_SPECIAL_INL_H_
