// Elementwise functions on a block of rows for each instruction set.
#include "hetnn/kernels/block_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/block_ops.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/formulas-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

// Rows that lie end to end are one long row.
HWY_INLINE Block Flattened(Block b, bool binary) {
  const bool dense = b.ld_in == b.cols && b.ld_out == b.cols;
  const bool operand_dense =
      !binary || (b.col_step == 1 && b.ld_operand == b.cols) || (b.col_step == 0 && b.ld_operand == 0);
  if (dense && operand_dense) {
    b.cols *= b.rows;
    b.rows = 1;
  }
  return b;
}

template <typename F>
HWY_INLINE void MapRows(const Block& block, F f) {
  const Block b = Flattened(block, false);
  const DF d;
  for (int64_t r = 0; r < b.rows; ++r) {
    const float* in = b.in + r * b.ld_in;
    float* out = b.out + r * b.ld_out;
    int64_t c = 0;
    for (; c + kLanes <= b.cols; c += kLanes) hn::StoreU(f(hn::LoadU(d, in + c)), d, out + c);
    if (c < b.cols) {
      const size_t n = static_cast<size_t>(b.cols - c);
      StoreFirst(f(LoadFirst(in + c, n)), out + c, n);
    }
  }
}

template <typename F>
HWY_INLINE void MapRows2(const Block& block, F f) {
  const Block b = Flattened(block, true);
  const DF d;
  for (int64_t r = 0; r < b.rows; ++r) {
    const float* in = b.in + r * b.ld_in;
    const float* operand = b.operand + r * b.ld_operand;
    float* out = b.out + r * b.ld_out;
    int64_t c = 0;
    if (b.col_step == 1) {
      for (; c + kLanes <= b.cols; c += kLanes)
        hn::StoreU(f(hn::LoadU(d, in + c), hn::LoadU(d, operand + c)), d, out + c);
      if (c < b.cols) {
        const size_t n = static_cast<size_t>(b.cols - c);
        StoreFirst(f(LoadFirst(in + c, n), LoadFirst(operand + c, n)), out + c, n);
      }
    } else {
      const VF y = hn::Set(d, *operand);
      for (; c + kLanes <= b.cols; c += kLanes) hn::StoreU(f(hn::LoadU(d, in + c), y), d, out + c);
      if (c < b.cols) {
        const size_t n = static_cast<size_t>(b.cols - c);
        StoreFirst(f(LoadFirst(in + c, n), y), out + c, n);
      }
    }
  }
}

#define HETNN_FUNCTION(name, operands, ...)                                          \
  void Map_##name(const Block& b) {                                                  \
    const VF c0 = Const(b.c0), c1 = Const(b.c1);                                     \
    if constexpr (operands == 1) {                                                   \
      MapRows(b, [&](VF x) HWY_ATTR { return formula::name(x, x, c0, c1); });        \
    } else {                                                                         \
      MapRows2(b, [&](VF x, VF y) HWY_ATTR { return formula::name(x, y, c0, c1); }); \
    }                                                                                \
  }
#include "hetnn/ops/elementwise/formulas.inc"

const BlockFunction* Functions() {
  static constexpr BlockFunction kFunctions[] = {
#define HETNN_FUNCTION(name, ...) Map_##name,
#include "hetnn/ops/elementwise/formulas.inc"
  };
  return kFunctions;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

BlockFunction block_function(ops::Function function) {
  return HETNN_CHOSEN(Functions)()[static_cast<size_t>(function)];
}

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
