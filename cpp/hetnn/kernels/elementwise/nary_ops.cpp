// n-ary passes for each instruction set.
#include "hetnn/kernels/elementwise/nary_ops.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/elementwise/nary_ops.cpp"
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

// Each operation: how the first input enters without a start, and how an input joins the result so far.
struct Add {
  static constexpr bool kWeighted = false;
  static HWY_INLINE VF First(VF x, VF) { return x; }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return hn::Add(acc, x); }
};
struct Subtract {
  static constexpr bool kWeighted = false;
  static HWY_INLINE VF First(VF x, VF) { return hn::Neg(x); }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return hn::Sub(acc, x); }
};
struct Weigh {
  static constexpr bool kWeighted = true;
  static HWY_INLINE VF First(VF x, VF c) { return hn::Mul(x, c); }
  static HWY_INLINE VF Join(VF acc, VF x, VF c) { return hn::MulAdd(x, c, acc); }
};
struct WeighRounded {
  static constexpr bool kWeighted = true;
  static HWY_INLINE VF First(VF x, VF c) { return hn::Mul(x, c); }
  static HWY_INLINE VF Join(VF acc, VF x, VF c) { return hn::Add(acc, hn::Mul(x, c)); }
};
struct Multiply {
  static constexpr bool kWeighted = false;
  static HWY_INLINE VF First(VF x, VF) { return x; }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return hn::Mul(acc, x); }
};
struct Maximum {
  static constexpr bool kWeighted = false;
  static HWY_INLINE VF First(VF x, VF) { return x; }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return MaxNan(acc, x); }
};
struct Minimum {
  static constexpr bool kWeighted = false;
  static HWY_INLINE VF First(VF x, VF) { return x; }
  static HWY_INLINE VF Join(VF acc, VF x, VF) { return MinNan(acc, x); }
};

template <typename Op, int kCount>
void Pass(const NaryPass& pass) {
  const DF d;
  const float* in[kCount];
  VF coefficients[kCount];
#pragma GCC unroll 16
  for (int k = 0; k < kCount; ++k) {
    in[k] = pass.inputs[k];
    coefficients[k] = Op::kWeighted ? hn::Set(d, pass.coefficients[k]) : hn::Zero(d);
  }
  const float* start = pass.start;
  const auto combine = [&](auto load) HWY_ATTR {
    VF acc = start != nullptr ? Op::Join(load(start), load(in[0]), coefficients[0])
                              : Op::First(load(in[0]), coefficients[0]);
#pragma GCC unroll 16
    for (int k = 1; k < kCount; ++k) acc = Op::Join(acc, load(in[k]), coefficients[k]);
    return acc;
  };
  int64_t i = 0;
  if (pass.stream) {
    for (; i + kLanes <= pass.n; i += kLanes)
      hn::Stream(combine([&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d, pass.out + i);
    hwy::FlushStream();
  } else {
    for (; i + kLanes <= pass.n; i += kLanes)
      hn::StoreU(combine([&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d, pass.out + i);
  }
  if (i < pass.n) {
    const auto lanes = static_cast<size_t>(pass.n - i);
    StoreFirst(combine([&](const float* p) HWY_ATTR { return LoadFirst(p + i, lanes); }), pass.out + i, lanes);
  }
}

template <typename Op, int... kCount>
constexpr void Fill(NaryFunction* table, std::integer_sequence<int, kCount...>) {
  ((table[kCount + 1] = &Pass<Op, kCount + 1>), ...);
}

constexpr NaryTable MakeTable() {
  NaryTable table{};
  constexpr auto kCounts = std::make_integer_sequence<int, kMaxNaryGroup>();
  Fill<Add>(table.add, kCounts);
  Fill<Subtract>(table.subtract, kCounts);
  Fill<Weigh>(table.weigh, kCounts);
  Fill<WeighRounded>(table.weigh_rounded, kCounts);
  Fill<Multiply>(table.multiply, kCounts);
  Fill<Maximum>(table.max, kCounts);
  Fill<Minimum>(table.min, kCounts);
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
HWY_EXPORT(Table);
const NaryTable& nary_table() { return *HWY_DYNAMIC_DISPATCH(Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
