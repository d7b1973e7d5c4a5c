// Comparisons of runs of elements for each instruction set.
#include "hetnn/kernels/elementwise/compare_ops.h"

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

// Each relation as a mask.
template <Relation kRelation, class D, class V = hn::Vec<D>>
HWY_INLINE hn::Mask<D> Holds(D d, V a, V b) {
  const V zero = hn::Zero(d);
  if constexpr (kRelation == Relation::equal) return hn::Eq(a, b);
  if constexpr (kRelation == Relation::greater) return hn::Gt(a, b);
  if constexpr (kRelation == Relation::not_less) return hn::Ge(a, b);
  if constexpr (kRelation == Relation::both) return hn::Gt(hn::Min(a, b), zero);
  if constexpr (kRelation == Relation::either) return hn::Gt(hn::Max(a, b), zero);
  if constexpr (kRelation == Relation::one) return hn::Xor(hn::Gt(a, zero), hn::Gt(b, zero));
}

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

template <typename T, Relation kRelation>
void Compare(const CompareRun& run) {
  using D = hn::ScalableTag<T>;
  using DMask = hn::RebindToUnsigned<D>;
  using DByte = hn::Rebind<uint8_t, D>;
  const D d;
  const DByte bytes;
  const auto *a = reinterpret_cast<const T*>(run.a), *b = reinterpret_cast<const T*>(run.b);
  const size_t of_block = kCompareBlock - 1;
  const size_t of_a = run.a_advances ? ~size_t{0} : of_block, of_b = run.b_advances ? ~size_t{0} : of_block;
  const auto one = hn::Set(bytes, 1), opposite = hn::Set(bytes, run.opposite ? 1 : 0);
  for (size_t i = 0; i < static_cast<size_t>(run.n); i += hn::Lanes(d)) {
    const auto holds = Holds<kRelation>(d, hn::LoadU(d, a + (i & of_a)), hn::LoadU(d, b + (i & of_b)));
    const auto ones = hn::BitCast(DMask(), hn::VecFromMask(d, holds));
    hn::StoreU(hn::Xor(hn::And(Bytes(DMask(), ones), one), opposite), bytes, run.out + i);
  }
}

template <typename T>
CompareFunction OfNumbers(Relation relation) {
  if (relation == Relation::equal) return Compare<T, Relation::equal>;
  if (relation == Relation::greater) return Compare<T, Relation::greater>;
  if constexpr (std::is_floating_point_v<T>) {
    if (relation == Relation::not_less) return Compare<T, Relation::not_less>;
  }
  return nullptr;
}

CompareFunction OfBytes(Relation relation) {
  if (relation == Relation::both) return Compare<uint8_t, Relation::both>;
  if (relation == Relation::either) return Compare<uint8_t, Relation::either>;
  if (relation == Relation::one) return Compare<uint8_t, Relation::one>;
  return OfNumbers<uint8_t>(relation);
}

CompareFunction Choose(Relation relation, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return OfNumbers<float>(relation);
    case DType::i32:
      return OfNumbers<int32_t>(relation);
    case DType::i64:
      return OfNumbers<int64_t>(relation);
    case DType::u8:
    case DType::boolean:
      return OfBytes(relation);
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

CompareFunction compare_function(Relation relation, DType dtype) { return HETNN_CHOSEN(Choose)(relation, dtype); }

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
