// n-ary passes for each instruction set.
#include "hetnn/kernels/elementwise/nary_ops.h"

#include <type_traits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/elementwise/nary_ops.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/vector_math-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

// Each operation: how an input joins the result so far. Only weighted sums touch their coefficient.
struct Add {
  static HWY_INLINE VF First(VF x, VF) { return x; }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return hn::Add(acc, x); }
};
struct Subtract {
  static HWY_INLINE VF First(VF x, VF) { return x; }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return hn::Sub(acc, x); }
};
struct Weigh {
  static HWY_INLINE VF First(VF x, VF c) { return hn::Mul(x, c); }
  static HWY_INLINE VF Join(VF acc, VF x, VF c) { return hn::MulAdd(x, c, acc); }
};
struct WeighRounded {
  static HWY_INLINE VF First(VF x, VF c) { return hn::Mul(x, c); }
  static HWY_INLINE VF Join(VF acc, VF x, VF c) { return hn::Add(acc, hn::Mul(x, c)); }
};
struct Multiply {
  static HWY_INLINE VF First(VF x, VF) { return x; }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return hn::Mul(acc, x); }
};
struct Maximum {
  static HWY_INLINE VF First(VF x, VF) { return x; }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return MaxNan(acc, x); }
};
struct Minimum {
  static HWY_INLINE VF First(VF x, VF) { return x; }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return MinNan(acc, x); }
};

// Pointers and coefficients stay in registers for the whole pass.
template <typename Op, int kCount>
void Pass(const NaryPass& pass) {
  constexpr bool kWeighted = std::is_same_v<Op, Weigh> || std::is_same_v<Op, WeighRounded>;
  const DF d;
  const float* in[kCount];
  VF coefficients[kCount];
#pragma GCC unroll 16
  for (int k = 0; k < kCount; ++k) {
    in[k] = pass.inputs[k];
    coefficients[k] = kWeighted ? hn::Set(d, pass.coefficients[k]) : hn::Zero(d);
  }
  float* out = pass.out;
  const bool stream = pass.stream;
  for (int64_t r = 0; r < pass.rows; ++r) {
    if (r > 0) {
      for (int k = 0; k < kCount; ++k) in[k] += pass.ld_inputs[k];
      out += pass.ld_out;
    }
    int64_t i = 0;
    for (; i + kLanes <= pass.n; i += kLanes) {
      VF acc = Op::First(hn::LoadU(d, in[0] + i), coefficients[0]);
#pragma GCC unroll 16
      for (int k = 1; k < kCount; ++k) acc = Op::Join(acc, hn::LoadU(d, in[k] + i), coefficients[k]);
      if (stream) {
        hn::Stream(acc, d, out + i);
      } else {
        hn::StoreU(acc, d, out + i);
      }
    }
    if (i < pass.n) {
      const auto lanes = static_cast<size_t>(pass.n - i);
      VF acc = Op::First(LoadFirst(in[0] + i, lanes), coefficients[0]);
      // Not unrolled: it runs once a row.
      for (int k = 1; k < kCount; ++k) acc = Op::Join(acc, LoadFirst(in[k] + i, lanes), coefficients[k]);
      StoreFirst(acc, out + i, lanes);
    }
  }
  if (stream) hwy::FlushStream();
}

template <typename Op, int... kCount>
constexpr void Fill(NaryFunction* table, std::integer_sequence<int, kCount...>) {
  ((table[kCount + 1] = &Pass<Op, kCount + 1>), ...);
}

constexpr NaryTable MakeTable() {
  NaryTable table{};
  constexpr auto kLong = std::make_integer_sequence<int, kMaxFanIn>();
  constexpr auto kShort = std::make_integer_sequence<int, kShortFanIn>();
  Fill<Add>(table.add, kLong);
  Fill<Subtract>(table.subtract, kShort);
  Fill<Weigh>(table.weigh, kLong);
  Fill<WeighRounded>(table.weigh_rounded, kShort);
  Fill<Multiply>(table.multiply, kShort);
  Fill<Maximum>(table.max, kShort);
  Fill<Minimum>(table.min, kShort);
  return table;
}

const NaryTable* Table() {
  static constexpr NaryTable kTable = MakeTable();
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const NaryTable& nary_table() { return *HETNN_CHOSEN(Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
