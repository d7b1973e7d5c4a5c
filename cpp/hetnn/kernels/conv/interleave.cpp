// Three planes of an image as pixels, for each instruction set.
#include "hetnn/kernels/conv/interleave.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/conv/interleave.cpp"
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

template <typename T>
void InterleaveThree(const T* from, int64_t plane, int64_t count, T* to) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreInterleaved3(hn::LoadU(d, from + i), hn::LoadU(d, from + plane + i), hn::LoadU(d, from + 2 * plane + i), d,
                          to + 3 * i);
  }
  for (; i < count; ++i)
    for (int64_t c = 0; c < 3; ++c) to[3 * i + c] = from[c * plane + i];
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
void interleave_three(const float* from, int64_t plane, int64_t count, float* to) {
  HETNN_CHOSEN(InterleaveThree<float>)(from, plane, count, to);
}
void interleave_three(const uint16_t* from, int64_t plane, int64_t count, uint16_t* to) {
  HETNN_CHOSEN(InterleaveThree<uint16_t>)(from, plane, count, to);
}
void interleave_three(const int8_t* from, int64_t plane, int64_t count, int8_t* to) {
  HETNN_CHOSEN(InterleaveThree<int8_t>)(from, plane, count, to);
}
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
