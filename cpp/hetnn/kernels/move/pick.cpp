// Picking by permutations for each instruction set.
#include "hetnn/kernels/move/pick.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/move/pick.cpp"
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

#if HWY_TARGET == HWY_AVX3
void Pick(const Picked* picked, int64_t count, int64_t rows, const float* x, int64_t x_row, float* y, int64_t y_row) {
  const DF d;
  for (int64_t row = 0; row < rows; ++row, x += x_row, y += y_row) {
    const Picked* from = picked;
    for (int64_t k = 0; k < count; k += kLanes, ++from) {
      const VF made{_mm512_permutex2var_ps(hn::LoadU(d, x + from->first).raw, _mm512_load_si512(from->lanes.data()),
                                           hn::LoadU(d, x + from->second).raw)};
      if (k + kLanes <= count) {
        hn::StoreU(made, d, y + k);
      } else {
        StoreFirst(made, y + k, static_cast<size_t>(count - k));
      }
    }
  }
}
PickFunction Function() { return &Pick; }
#else
PickFunction Function() { return nullptr; }
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
PickFunction pick_function() { return HETNN_CHOSEN(Function)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
