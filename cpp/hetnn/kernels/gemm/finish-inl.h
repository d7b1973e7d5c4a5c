// What becomes of a tile's sums that stand in memory, compiled once per instruction set.
#if defined(HETNN_KERNELS_GEMM_FINISH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HETNN_KERNELS_GEMM_FINISH_INL_H_
#undef HETNN_KERNELS_GEMM_FINISH_INL_H_
#else
#define HETNN_KERNELS_GEMM_FINISH_INL_H_
#endif

#include "hetnn/kernels/gemm/micro.h"
#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {

// out = clamp(f(sum + bias + addend * scale, operand)), of any number of columns. What is added to a sum comes last,
// however large it is: every rounding before is one of the sum's own size.
template <bool kWithOperand, typename F>
HWY_INLINE void Finish(const MicroTile& t, int rows, int vectors, F f) {
  const DF d;
  const VF lo = Const(t.lo), hi = Const(t.hi), scale = Const(t.addend_scale);
  const int64_t ld = int64_t{vectors} * kLanes;
  for (int64_t c = 0; c < HWY_MIN(ld, t.cols); c += kLanes) {
    const auto some = static_cast<size_t>(HWY_MIN(t.cols - c, int64_t{kLanes}));
    // Where masks are free, one loop serves whole vectors too.
    const bool whole = HWY_TARGET != HWY_AVX3 && some == static_cast<size_t>(kLanes);
    const auto load = [&](const float* from) HWY_ATTR { return whole ? hn::LoadU(d, from) : LoadFirst(from, some); };
    const VF bias = t.bias != nullptr ? load(t.bias + c) : hn::Zero(d);
    const bool of_columns = kWithOperand && t.ld_operand == 0;
    const auto operand_of = [&](const float* from)
                                HWY_ATTR { return t.operand_step == 0 ? hn::Set(d, *from) : load(from + c); };
    VF operand = of_columns ? operand_of(t.operand) : hn::Zero(d);
    for (int r = 0; r < rows; ++r) {
      VF y = hn::Load(d, t.sums + r * ld + c);
      if (t.bias != nullptr) y = hn::Add(y, bias);
      if (t.addend != nullptr) y = hn::MulAdd(load(t.addend + r * t.ld_addend + c), scale, y);
      if (kWithOperand && !of_columns) operand = operand_of(t.operand + r * t.ld_operand);
      y = AtMost(hi, AtLeast(lo, f(y, operand)));
      float* out = t.out + r * t.ld_out + c;
      whole ? hn::StoreU(y, d, out) : StoreFirst(y, out, some);
    }
  }
}

inline HWY_NOINLINE void FinishSums(const MicroTile& t, int rows, int vectors) {
  Finish<false>(t, rows, vectors, [](VF x, VF /*operand*/) HWY_ATTR { return x; });
}

}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();
#endif  // HETNN_KERNELS_GEMM_FINISH_INL_H_
