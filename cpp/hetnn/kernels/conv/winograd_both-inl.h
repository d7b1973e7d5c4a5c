// A transform of Winograd's along rows, then along columns, compiled once per instruction set.
#if defined(HETNN_KERNELS_CONV_WINOGRAD_BOTH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HETNN_KERNELS_CONV_WINOGRAD_BOTH_INL_H_
#undef HETNN_KERNELS_CONV_WINOGRAD_BOTH_INL_H_
#else
#define HETNN_KERNELS_CONV_WINOGRAD_BOTH_INL_H_
#endif

#include "hetnn/kernels/conv/winograd_transform.h"
#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {

// store(i, j, y[i][j]) of y = T d T^T, where `transform` makes kTo vectors of kFrom, up to six, and d[i][j] =
// load(i, j). All stays in registers as far as there are such: every loop is unrolled.
template <typename V, int kFrom, int kTo, typename Load, typename Transform, typename Store>
HWY_INLINE void TransformBoth(const Load& load, const Transform& transform, const Store& store) {
  V rows[kFrom][kTo];
  HETNN_UNROLL
  for (int i = 0; i < kFrom; ++i) {
    V points[kFrom];
    HETNN_UNROLL
    for (int j = 0; j < kFrom; ++j) points[j] = load(i, j);
    transform(points, rows[i]);
  }
  HETNN_UNROLL
  for (int j = 0; j < kTo; ++j) {
    V column[kFrom], result[kTo];
    HETNN_UNROLL
    for (int i = 0; i < kFrom; ++i) column[i] = rows[i][j];
    transform(column, result);
    HETNN_UNROLL
    for (int i = 0; i < kTo; ++i) store(i, j, result[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#endif  // toggle
