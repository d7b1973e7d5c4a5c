// The microkernel of bf16 for each instruction set: pairs made f32.
#include "hetnn/kernels/gemm/brain_micro.h"

#include <chrono>
#include <type_traits>
#include <utility>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/kernels/elementwise/nary_narrow_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/gemm/brain_micro.cpp"
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

#undef HETNN_UNIT_ATTR
#define HETNN_UNIT_ATTR HWY_ATTR
#include "hetnn/kernels/gemm/brain_micro-inl.h"

using DW = hn::Rebind<uint32_t, DF>;

struct Widened {
  static constexpr int kLanes = HWY_NAMESPACE::kLanes;
  using Sums = VF;
  using Words = hn::Vec<DW>;
  struct Pair {
    VF first, second;
  };
  static HWY_INLINE VF Zero() { return hn::Zero(DF()); }
  static HWY_INLINE Words Line(const std::byte* at) { return hn::LoadU(DW(), reinterpret_cast<const uint32_t*>(at)); }
  static HWY_INLINE VF First(Words words) { return hn::BitCast(DF(), hn::ShiftLeft<16>(words)); }
  static HWY_INLINE VF Second(Words words) { return hn::BitCast(DF(), hn::And(words, hn::Set(DW(), 0xFFFF0000U))); }
  static HWY_INLINE Pair Spread(uint32_t word) {
    const Words words = hn::Set(DW(), word);
    return {First(words), Second(words)};
  }
  static HWY_INLINE VF Multiply(VF sums, Words line, const Pair& pair) {
    return hn::MulAdd(pair.second, Second(line), hn::MulAdd(pair.first, First(line), sums));
  }
  static HWY_INLINE VF Biased(VF sums, const float* bias) { return hn::Add(sums, hn::LoadU(DF(), bias)); }
  static HWY_INLINE VF Bounded(VF sums, float low, float high) {
    return AtMost(hn::Set(DF(), high), AtLeast(hn::Set(DF(), low), sums));
  }
  static HWY_INLINE VF Add(VF a, VF b) { return hn::Add(a, b); }
  static HWY_NOINLINE VF Load(const uint16_t* from, int64_t count) {
    HWY_ALIGN float lanes[kLanes] = {};
    static const HalvesConversion convert = halves_conversion(DType::bf16);
    convert.widen(from, lanes, HWY_MIN(count, int64_t{kLanes}));
    return hn::Load(DF(), lanes);
  }
  static HWY_NOINLINE void Store(VF sums, uint16_t* out, int64_t count) {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(sums, DF(), lanes);
    static const HalvesConversion convert = halves_conversion(DType::bf16);
    convert.narrow(lanes, out, HWY_MIN(count, int64_t{kLanes}));
  }
};

const BrainMicroTable* Table() {
  static constexpr BrainMicroTable kTable = [] {
    BrainMicroTable table{};
#if HWY_TARGET == HWY_AVX3
    FillBrains<Widened, 1>(table, std::make_integer_sequence<int, 8>());
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
    FillBrains<Widened, 1>(table, std::make_integer_sequence<int, 4>());
#else
    FillBrains<Widened, 1>(table, std::make_integer_sequence<int, 1>());
#endif
    return table;
  }();
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "hetnn/kernels/gemm/brain_dots.h"

namespace hetnn::kernels {
namespace {

// Of the best of some runs of a tile of f32 and one of bf16, the second's share of the first's time.
double share_of_time() {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kDepth = 256, kRows = 8;
  const AlignedBuffer zeros(kDepth * kPanel * 2 * sizeof(float));
  const std::byte* const bytes = zeros.data();
  const std::byte* rows[kRows];
  std::fill_n(rows, kRows, bytes);
  alignas(64) float sums[kMaxTileElems], reals[kRows * kPanel * 2];
  uint16_t halves[kRows * kPanel * 2];
  MicroTile real(sums);
  BrainTile brain;
  const auto set = [&](auto& tile, const auto* panel, int64_t stride) {
    tile.rows = rows;
    tile.rows_stride = kRows;
    tile.taps = 1;
    tile.k = kDepth;
    tile.panel = panel;
    tile.panel_stride = stride;
    tile.ld_out = tile.cols = kPanel * 2;
    tile.prefetch = bytes;
  };
  set(real, zeros.as<const float>(), kDepth * kPanel);
  set(brain, bytes, kDepth * kPanel * 2);
  real.out = reals;
  brain.out = halves;
  const auto time_of = [](const auto& run) {
    const Clock::time_point start = Clock::now();
    for (int k = 0; k < 4; ++k) run();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double of_reals = 1, of_brains = 1;
  for (int round = 0; round < 32; ++round) {
    of_reals = std::min(of_reals, time_of([&] { micro_table().run[2][kRows](real); }));
    of_brains = std::min(of_brains, time_of([&] { brain_micro_table().run[2][kRows](brain); }));
  }
  return of_brains / of_reals;
}

}  // namespace

const BrainMicroTable& brain_micro_table() {
  return multiplies_brain_pairs() ? brain_dots_table() : *HETNN_CHOSEN(Table)();
}

bool brain_pairs_pay() {
  constexpr double kMarked = 0.75;
  if (!multiplies_brain_pairs()) return false;
  static const bool pay = share_of_time() < kMarked;
  return pay;
}

}  // namespace hetnn::kernels
#endif  // HWY_ONCE
