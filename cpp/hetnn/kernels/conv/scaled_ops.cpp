// Scaling rows for each instruction set.
#include "hetnn/kernels/conv/scaled_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/conv/scaled_ops.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

template <bool kShifts>
HWY_INLINE void Scale(const ScaledBlock& b) {
  const DF d;
  const VF lo = Const(b.lo);
  const auto scaled = [lo](VF x, VF scale, VF shift) HWY_ATTR {
    const VF y = hn::Mul(x, scale);
    return AtLeast(lo, kShifts ? hn::Add(y, shift) : y);
  };
  for (int64_t r = 0; r < b.rows; ++r) {
    const float* in = b.in + r * b.ld_in;
    float* out = b.out + r * b.ld_out;
    int64_t c = 0;
    for (; c + kLanes <= b.cols; c += kLanes) {
      const VF scale = hn::LoadU(d, b.scale + c), shift = kShifts ? hn::LoadU(d, b.shift + c) : scale;
      hn::StoreU(scaled(hn::LoadU(d, in + c), scale, shift), d, out + c);
    }
    if (c == b.cols) continue;
    const auto n = static_cast<size_t>(b.cols - c);
    const VF scale = LoadFirst(b.scale + c, n), shift = kShifts ? LoadFirst(b.shift + c, n) : scale;
    StoreFirst(scaled(LoadFirst(in + c, n), scale, shift), out + c, n);
  }
}

void ScaleRows(const ScaledBlock& b) { b.shift == nullptr ? Scale<false>(b) : Scale<true>(b); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

void scale_rows(const ScaledBlock& block) { HETNN_CHOSEN(ScaleRows)(block); }

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
