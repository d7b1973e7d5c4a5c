// What all tiles of f32 share, compiled once per instruction set.
#if defined(HETNN_KERNELS_GEMM_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HETNN_KERNELS_GEMM_TILES_INL_H_
#undef HETNN_KERNELS_GEMM_TILES_INL_H_
#else
#define HETNN_KERNELS_GEMM_TILES_INL_H_
#endif

#include <cstddef>

#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {

// Products that are summed one by one before their sum joins the others': the error grows with the square root of this
// instead of that of all. Rarely enough to cost about a hundredth of the time.
constexpr int64_t kMostSteps = 256;

// Of rows so many bytes apart each step's elements, by three pointers five rows apart and two distances: more pointers
// would not fit the registers.
class EvenPointers {
 public:
  HWY_INLINE EvenPointers(const float* first, int64_t one)
      : rows0_(reinterpret_cast<const std::byte*>(first)),
        rows5_(rows0_ + 5 * one),
        rows10_(rows5_ + 5 * one),
        one_(one),
        three_(3 * one) {}
  HWY_INLINE float Of(int r) const {
    const std::byte* const from = r < 5 ? rows0_ : r < 10 ? rows5_ : rows10_;
    const int step = r % 5;
    return *reinterpret_cast<const float*>(from + (step == 3 ? three_ : step * one_));
  }
  HWY_INLINE void Next() {
    rows0_ += sizeof(float);
    rows5_ += sizeof(float);
    rows10_ += sizeof(float);
    // Else the compiler makes a pointer for each row of them.
    asm("" : "+r"(rows0_), "+r"(rows5_), "+r"(rows10_));
  }

 private:
  const std::byte *rows0_, *rows5_, *rows10_;
  int64_t one_, three_;
};

}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();
#endif  // HETNN_KERNELS_GEMM_TILES_INL_H_
