// The elementwise functions over vectors of f32, formula::NAME(x, y, c0, c1), compiled once per instruction set.
#if defined(HETNN_KERNELS_FORMULAS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HETNN_KERNELS_FORMULAS_INL_H_
#undef HETNN_KERNELS_FORMULAS_INL_H_
#else
#define HETNN_KERNELS_FORMULAS_INL_H_
#endif

#include "hetnn/kernels/special-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {

// The vocabulary of formulas.inc stands in vector_math-inl.h, vector_functions-inl.h and special-inl.h.
namespace formula {
using namespace arithmetic;
using V = VF;

#define HETNN_FUNCTION(name, operands, constants, cost, domain, tolerance, def, ...)                                 \
  HWY_INLINE VF name([[maybe_unused]] VF x, [[maybe_unused]] VF y, [[maybe_unused]] VF c0, [[maybe_unused]] VF c1) { \
    __VA_ARGS__                                                                                                      \
  }
#include "hetnn/ops/elementwise/formulas.inc"
}  // namespace formula

}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();
#endif  // HETNN_KERNELS_FORMULAS_INL_H_
