// Elementwise functions of a tile's sums for each instruction set.
#include "hetnn/kernels/gemm/micro.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/gemm/finish.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/formulas-inl.h"
#include "hetnn/kernels/gemm/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR
#define HETNN_SPECIAL(...)
#define HETNN_FUNCTION(name, operands, ...)                                                                      \
  void Finish_##name(const MicroTile& t, int rows, int vectors) {                                                \
    const VF c0 = Const(t.c0), c1 = Const(t.c1);                                                                 \
    Finish<operands == 2>(t, rows, vectors,                                                                      \
                          [&](VF x, VF y) HWY_ATTR { return formula::name(x, operands == 2 ? y : x, c0, c1); }); \
  }
#include "hetnn/ops/elementwise/formulas.inc"

const FinishFunction* Functions() {
  static constexpr FinishFunction kFunctions[] = {
#define HETNN_FUNCTION(name, ...) Finish_##name,
#define HETNN_SPECIAL(...) nullptr,
#include "hetnn/ops/elementwise/formulas.inc"
  };
  return kFunctions;
}
#else  // the baseline of x86, where nothing is fast: there they stay steps of their own
const FinishFunction* Functions() { return nullptr; }
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

const FinishFunction* finish_functions() { return HETNN_CHOSEN(Functions)(); }

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
