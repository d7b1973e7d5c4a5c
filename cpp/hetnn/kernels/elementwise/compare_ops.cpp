// Comparisons of runs of elements for each instruction set.
#include "hetnn/kernels/elementwise/compare_ops.h"

#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/elementwise/compare_ops.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// The vocabulary of predicates over lanes of any type, whose conditions are masks, and their formulas.
namespace formula {
using hn::And;
using hn::Eq;
using hn::Ge;
using hn::Gt;
using hn::Not;
using hn::Or;
using hn::Xor;

// Of integers Highway does not have it everywhere.
template <class V>
requires std::is_integral_v<hn::TFromV<V>> HWY_INLINE auto Ge(V x, V y) { return hn::Not(hn::Gt(y, x)); }
// NaN too, which Highway's Ne says is not unequal to 0 on some instruction sets.
template <class V>
HWY_INLINE auto Holds(V x) {
  return hn::Not(hn::Eq(x, hn::Zero(hn::DFromV<V>())));
}

#define HETNN_PREDICATE(name, operands, def, ...)          \
  struct name {                                            \
    template <class V>                                     \
    HWY_INLINE static auto of(V x, [[maybe_unused]] V y) { \
      __VA_ARGS__                                          \
    }                                                      \
  };
#include "hetnn/ops/elementwise/formulas.inc"
}  // namespace formula

// A byte for each lane, of ones or zeros.
template <class D>
HWY_INLINE auto Bytes(D, hn::Vec<D> ones) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    const hn::Rebind<uint32_t, D> half;
    return Bytes(half, hn::TruncateTo(half, ones));
  } else if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::Rebind<int8_t, D> bytes;
    return hn::BitCast(hn::Rebind<uint8_t, D>(), hn::DemoteTo(bytes, hn::BitCast(hn::Rebind<int32_t, D>(), ones)));
  } else {
    return ones;
  }
}

template <typename T, typename Formula>
void Compare(const CompareRun& run) {
  using D = hn::ScalableTag<T>;
  using DMask = hn::RebindToUnsigned<D>;
  using DByte = hn::Rebind<uint8_t, D>;
  const D d;
  const DByte bytes;
  const auto *a = reinterpret_cast<const T*>(run.a), *b = reinterpret_cast<const T*>(run.b);
  const size_t of_block = kCompareBlock - 1;
  const size_t of_a = run.a_advances ? ~size_t{0} : of_block, of_b = run.b_advances ? ~size_t{0} : of_block;
  const auto one = hn::Set(bytes, 1);
  for (size_t i = 0; i < static_cast<size_t>(run.n); i += hn::Lanes(d)) {
    const auto holds = Formula::of(hn::LoadU(d, a + (i & of_a)), hn::LoadU(d, b + (i & of_b)));
    const auto ones = hn::BitCast(DMask(), hn::VecFromMask(d, holds));
    hn::StoreU(hn::And(Bytes(DMask(), ones), one), bytes, run.out + i);
  }
}

template <typename T>
CompareFunction Of(ops::Predicate predicate) {
  static constexpr CompareFunction kFunctions[] = {
#define HETNN_PREDICATE(name, ...) Compare<T, formula::name>,
#include "hetnn/ops/elementwise/formulas.inc"
  };
  return kFunctions[static_cast<size_t>(predicate)];
}

struct TruthLanes {
  using D = hn::ScalableTag<float>;
  using DI = hn::RebindToSigned<D>;
  using DByte = hn::Rebind<uint8_t, D>;
  static constexpr D kD{};
  static int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(kD)); }
};

void ChooseFloats(const uint8_t* holds, const float* a, const float* b, float* out, int64_t n) {
  using T = TruthLanes;
  int64_t i = 0;
  for (; i + T::Lanes() <= n; i += T::Lanes()) {
    const auto chosen = hn::Ne(hn::PromoteTo(T::DI(), hn::LoadU(T::DByte(), holds + i)), hn::Zero(T::DI()));
    const auto y = hn::IfThenElse(hn::RebindMask(T::kD, chosen), hn::LoadU(T::kD, a + i), hn::LoadU(T::kD, b + i));
    hn::StoreU(y, T::kD, out + i);
  }
  for (; i < n; ++i) out[i] = holds[i] != 0 ? a[i] : b[i];
}

void ChooseTruths(const uint8_t* holds, const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto other = hn::Eq(hn::LoadU(d, holds + i), hn::Zero(d));
    hn::StoreU(hn::IfThenElse(other, hn::LoadU(d, b + i), hn::LoadU(d, a + i)), d, out + i);
  }
  for (; i < n; ++i) out[i] = holds[i] != 0 ? a[i] : b[i];
}

void WidenTruths(const uint8_t* from, float* to, int64_t n) {
  using T = TruthLanes;
  int64_t i = 0;
  for (; i + T::Lanes() <= n; i += T::Lanes())
    hn::StoreU(hn::ConvertTo(T::kD, hn::PromoteTo(T::DI(), hn::LoadU(T::DByte(), from + i))), T::kD, to + i);
  for (; i < n; ++i) to[i] = static_cast<float>(from[i]);
}

void NarrowTruths(const float* from, uint8_t* to, int64_t n) {
  using T = TruthLanes;
  using DMask = hn::RebindToUnsigned<T::D>;
  const auto one = hn::Set(T::DByte(), 1);
  int64_t i = 0;
  for (; i + T::Lanes() <= n; i += T::Lanes()) {
    const auto holds = formula::Holds(hn::LoadU(T::kD, from + i));
    const auto ones = hn::BitCast(DMask(), hn::VecFromMask(T::kD, holds));
    hn::StoreU(hn::And(Bytes(DMask(), ones), one), T::DByte(), to + i);
  }
  for (; i < n; ++i) to[i] = from[i] != 0 ? 1 : 0;
}

const TruthOps* Truths() {
  static constexpr TruthOps kOps = {ChooseFloats, ChooseTruths, WidenTruths, NarrowTruths};
  return &kOps;
}

CompareFunction Choose(ops::Predicate predicate, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return Of<float>(predicate);
    case DType::i32:
      return Of<int32_t>(predicate);
    case DType::i64:
      return Of<int64_t>(predicate);
    case DType::u8:
    case DType::boolean:
      return Of<uint8_t>(predicate);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {

CompareFunction compare_function(ops::Predicate predicate, DType dtype) {
  return HETNN_CHOSEN(Choose)(predicate, dtype);
}

const TruthOps& truth_ops() { return *HETNN_CHOSEN(Truths)(); }

void compare_runs(CompareFunction function, int64_t elem_bytes, const ComparedRun& a, const ComparedRun& b, int64_t n,
                  uint8_t* out) {
  constexpr int64_t kWidest_bytes = 8;
  const int64_t whole = n / kCompareBlock * kCompareBlock, rest = n - whole;
  function({a.at, b.at, a.advances, b.advances, out, whole});
  if (rest == 0) return;
  alignas(64) std::byte last[2][kCompareBlock * kWidest_bytes] = {};
  alignas(64) uint8_t results[kCompareBlock];
  const auto padded = [&](const ComparedRun& run, std::byte* memory) -> const std::byte* {
    if (!run.advances) return run.at;
    std::memcpy(memory, run.at + whole * elem_bytes, static_cast<size_t>(rest * elem_bytes));
    return memory;
  };
  function({padded(a, last[0]), padded(b, last[1]), false, false, results, kCompareBlock});
  std::memcpy(out + whole, results, static_cast<size_t>(rest));
}

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
