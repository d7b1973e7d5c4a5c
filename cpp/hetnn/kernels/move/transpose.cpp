// Transposition by the instruction set in use.
#include "hetnn/kernels/move/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/move/transpose.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/move/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {
void TransposeAll(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows, int64_t cols) {
  Transpose(from, from_ld, to, to_ld, rows, cols);
}
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
void transpose(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows, int64_t cols) {
  HETNN_CHOSEN(TransposeAll)(from, from_ld, to, to_ld, rows, cols);
}

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
