// The microkernel for each instruction set.
#include "hetnn/kernels/gemm/micro.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/gemm/micro.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/gemm/finish-inl.h"
#include "hetnn/kernels/gemm/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr int kVectorsPerPanel = static_cast<int>(kPanel) / kLanes;

// Sums under way that hide how long a multiply-add takes.
constexpr int kChains = 8;

template <int kRows, int kVectors>
HWY_INLINE void AddTo(const VF (&acc)[kRows][kVectors], float* HWY_RESTRICT sums, bool has_sums) {
  const DF d;
  HETNN_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    HETNN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      float* at = sums + (r * kVectors + v) * kLanes;
      hn::Store(has_sums ? hn::Add(hn::Load(d, at), acc[r][v]) : acc[r][v], d, at);
    }
  }
}

// How a line of a panel, 64 bytes, gives weights: vector v of the columns, of the s-th of the kSteps k that it holds.
struct Reals {
  static constexpr int kSteps = 1;
  static HWY_INLINE VF Load(const float* line, int v, int /*s*/) { return hn::Load(DF(), line + v * kLanes); }
};
struct Halves {  // [2][16]
  static constexpr int kSteps = 2;
  static HWY_INLINE VF Load(const float* line, int v, int s) {
    const hn::Rebind<hwy::float16_t, DF> d;
    return hn::PromoteTo(DF(), hn::LoadU(d, reinterpret_cast<const hwy::float16_t*>(line) + s * kPanel + v * kLanes));
  }
};
struct Brains {  // [16][2]: halves of a word of 32 bits, as instructions on such pairs read them
  static constexpr int kSteps = 2;
  static HWY_INLINE VF Load(const float* line, int v, int s) {
    const hn::Rebind<uint32_t, DF> d;
    const auto* at = reinterpret_cast<const uint32_t*>(line) + v * kLanes;
    if (s == 0) return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::Load(d, at)));
#if HWY_TARGET == HWY_AVX3  // no accumulator makes room for a mask
    return VF{_mm512_castsi512_ps(_mm512_maskz_loadu_epi16(0xAAAAAAAAU, at))};
#else
    return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::ShiftRight<16>(hn::Load(d, at))));
#endif
  }
};

// So many rows have a pointer each in a register. Of more, the pointers are read again for every step, unless the rows
// are evenly spaced.
constexpr int kPointedRows = HWY_TARGET == HWY_AVX3 ? 4 : kMaxTileRows;

// The accumulators must stay in registers: every loop over rows and vectors has constant bounds and is unrolled in
// full. Every kParts-th step of k has a sum of its own.
template <typename Weights, int kRows, int kPanels, int kParts, bool kEven>
HWY_INLINE void MicroOf(const MicroTile& t) {
  constexpr int kVectors = kPanels * kVectorsPerPanel, kSteps = Weights::kSteps;
  static_assert(kParts == 1 || kParts % kSteps == 0);
  const DF d;
  VF parts[kParts][kRows][kVectors];
  VF(&acc)[kRows][kVectors] = parts[0];
  const auto columns_of = [&](int v) { return t.cols - static_cast<int64_t>(v) * kLanes; };
  const auto clear = [&]() HWY_ATTR {
    HETNN_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      HETNN_UNROLL
      for (int r = 0; r < kRows; ++r) {
        HETNN_UNROLL
        for (int p = 0; p < kParts; ++p) parts[p][r][v] = hn::Zero(d);
      }
    }
  };
  const auto join = [&]() HWY_ATTR {
    HETNN_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      HETNN_UNROLL
      for (int r = 0; r < kRows; ++r) {
        HETNN_UNROLL
        for (int p = 1; p < kParts; ++p) parts[0][r][v] = hn::Add(parts[0][r][v], parts[p][r][v]);
      }
    }
  };
  clear();

  // What was summed so far, once there is more of it than one run of kMostSteps.
  float* HWY_RESTRICT sums = t.sums;
  bool has_sums = false;
  const float* HWY_RESTRICT b = t.panel;
  const auto* prefetch = static_cast<const std::byte*>(t.prefetch);
  const int64_t panel_stride = t.panel_stride;
  int64_t steps = 0;
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const float* HWY_RESTRICT a[kRows];
    const std::byte* const* rows = t.rows + tap * t.rows_stride;
    HETNN_UNROLL
    for (int r = 0; r < HWY_MIN(kEven ? 1 : kMaxTileRows, kRows); ++r) {
      const std::byte* const row = t.even_bytes != 0 ? rows[0] + r * t.even_bytes : rows[r];
      a[r] = reinterpret_cast<const float*>(row) + t.row_offset;
    }
    for (int64_t k = 0; k < t.k;) {
      if (steps == kMostSteps) {
        join();
        AddTo<kRows, kVectors>(acc, sums, has_sums);
        clear();
        has_sums = true;
        steps = 0;
      }
      const int64_t end = HWY_MIN(t.k, k + kMostSteps - steps);
      steps += (end - k + kSteps - 1) / kSteps * kSteps;
      const auto weights = [&](int step, int v) HWY_ATTR {
        return Weights::Load(b + step / kSteps * kPanel + (v / kVectorsPerPanel) * panel_stride, v % kVectorsPerPanel,
                             step % kSteps);
      };
      if constexpr (kParts > 1) {
        static_assert(kRows == 1);
#pragma GCC unroll 1
        for (; end - k >= kParts; k += kParts) {
          HETNN_UNROLL
          for (int p = 0; p < kParts; ++p) {
            const VF x = hn::Set(d, a[0][k + p]);
            HETNN_UNROLL
            for (int v = 0; v < kVectors; ++v) parts[p][0][v] = hn::MulAdd(x, weights(p, v), parts[p][0][v]);
          }
          b += kParts / kSteps * kPanel;
        }
      }
      if constexpr (kEven) {
        EvenPointers at(a[0] + k, t.even_bytes);
        for (; k < end; ++k) {
          VF w[kVectors];
          HETNN_UNROLL
          for (int v = 0; v < kVectors; ++v) w[v] = weights(0, v);
          HETNN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const VF x = hn::Set(d, at.Of(r));
            HETNN_UNROLL
            for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(x, w[v], acc[r][v]);
          }
          at.Next();
          b += kPanel;
          __builtin_prefetch(prefetch, 0, 2);
          prefetch += t.prefetch_step_bytes;
        }
        continue;
      }
      const auto multiply = [&](int s) HWY_ATTR {
        if constexpr (kRows == 1) {  // nothing reads a weight again that would be worth a register
          const VF x = hn::Set(d, a[0][k + s]);
          HETNN_UNROLL
          for (int v = 0; v < kVectors; ++v) acc[0][v] = hn::MulAdd(x, weights(s, v), acc[0][v]);
        } else {
          VF w[kVectors];
          HETNN_UNROLL
          for (int v = 0; v < kVectors; ++v) w[v] = weights(s, v);
          HETNN_UNROLL
          for (int r = 0; r < kRows; ++r) {
            const VF x = hn::Set(d, a[r][k + s]);
            HETNN_UNROLL
            for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(x, w[v], acc[r][v]);
          }
        }
      };
      for (; end - k >= kSteps; k += kSteps) {
        HETNN_UNROLL
        for (int s = 0; s < kSteps; ++s) multiply(s);
        b += kPanel;
        __builtin_prefetch(prefetch, 0, 2);
        prefetch += t.prefetch_step_bytes;
      }
      if (kSteps > 1 && k < end) {
        multiply(0);
        b += kPanel;
        k = end;
      }
    }
  }
  join();
  // Where a panel is a vector, only the last one may hold fewer columns.
  constexpr bool kCuts = kVectorsPerPanel == 1;
  if (kSteps > 1 || t.finish != nullptr || (!kCuts && columns_of(kVectors) < 0)) {
    AddTo<kRows, kVectors>(acc, sums, has_sums);
    return t.finish != nullptr ? t.finish(t, kRows, kVectors) : FinishSums(t, kRows, kVectors);
  }
  if (has_sums) {
    HETNN_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      HETNN_UNROLL
      for (int r = 0; r < kRows; ++r) acc[r][v] = hn::Add(acc[r][v], hn::Load(d, sums + (r * kVectors + v) * kLanes));
    }
  }

  // As FinishSums does it.
  const auto last = static_cast<size_t>(kCuts ? HWY_MIN(columns_of(kVectors - 1), int64_t{kLanes}) : kLanes);
  const auto load = [&](const float* from, int v) HWY_ATTR {
    return kCuts && v == kVectors - 1 ? LoadFirst(from + v * kLanes, last) : hn::LoadU(d, from + v * kLanes);
  };
  HETNN_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    if (t.bias != nullptr) {
      const VF bias = load(t.bias, v);
      HETNN_UNROLL
      for (int r = 0; r < kRows; ++r) acc[r][v] = hn::Add(acc[r][v], bias);
    }
    if (t.addend != nullptr) {
      const VF scale = hn::Set(d, t.addend_scale);
      HETNN_UNROLL
      for (int r = 0; r < kRows; ++r) acc[r][v] = hn::MulAdd(load(t.addend + r * t.ld_addend, v), scale, acc[r][v]);
    }
  }

  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
  HETNN_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    HETNN_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const VF y = AtMost(hi, AtLeast(lo, acc[r][v]));
      float* out = t.out + v * kLanes + r * t.ld_out;
      kCuts&& v == kVectors - 1 ? StoreFirst(y, out, last) : hn::StoreU(y, d, out);
    }
  }
}

template <typename Weights, int kRows, int kPanels, int kParts = 1>
void Micro(const MicroTile& t) {
  if constexpr (Weights::kSteps == 1 && kRows > kPointedRows) {
    if (t.even_bytes != 0) return MicroOf<Weights, kRows, kPanels, kParts, true>(t);
  }
  MicroOf<Weights, kRows, kPanels, kParts, false>(t);
}

template <typename Weights, int kPanels, int... kRow>
constexpr void Fill(MicroTable& table, std::integer_sequence<int, kRow...>) {
  table.max_rows[kPanels] = static_cast<int>(sizeof...(kRow));
  ((table.run[kPanels][kRow + 1] = &Micro<Weights, kRow + 1, kPanels>), ...);
  table.run_lone[kPanels] =
      &Micro<Weights, 1, kPanels, HWY_MAX(Weights::kSteps, kChains / (kPanels * kVectorsPerPanel))>;
}

// As many accumulators as leave registers for one row of weights and one broadcast: 32 registers of 16 lanes, 16 of 8,
// and 32 (NEON) or 16 (emulated) of 4.
constexpr MicroTable MakeTable() {
  MicroTable table{};
#if HWY_TARGET == HWY_AVX3
  Fill<Reals, 1>(table, std::make_integer_sequence<int, 14>());
  Fill<Reals, 2>(table, std::make_integer_sequence<int, 14>());
  Fill<Reals, 4>(table, std::make_integer_sequence<int, 6>());
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  Fill<Reals, 1>(table, std::make_integer_sequence<int, 6>());
#if HWY_TARGET == HWY_AVX2
  Fill<Reals, 2>(table, std::make_integer_sequence<int, 1>());
  Fill<Reals, 4>(table, std::make_integer_sequence<int, 1>());
#endif
#else
  Fill<Reals, 1>(table, std::make_integer_sequence<int, 2>());
#endif
  return table;
}

// Tiles of one width, so that little is compiled twice more: a last panel runs as two, the second of nothing.
template <typename Weights>
constexpr MicroTable MakeNarrowTable() {
  MicroTable table{};
#if HWY_TARGET == HWY_AVX3
  Fill<Weights, 2>(table, std::make_integer_sequence<int, 14>());
  table.max_rows[1] = table.max_rows[2];
  for (int rows = 0; rows <= kMaxTileRows; ++rows) table.run[1][rows] = table.run[2][rows];
  table.run_lone[1] = table.run_lone[2];
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  Fill<Weights, 1>(table, std::make_integer_sequence<int, 6>());
#else
  Fill<Weights, 1>(table, std::make_integer_sequence<int, 1>());
#endif
  table.one_width = true;
  return table;
}

const MicroTable* Table() {
  static constexpr MicroTable kTable = MakeTable();
  return &kTable;
}
const MicroTable* HalvesTable() {
  static constexpr MicroTable kTable = MakeNarrowTable<Halves>();
  return &kTable;
}
const MicroTable* BrainsTable() {
  static constexpr MicroTable kTable = MakeNarrowTable<Brains>();
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const MicroTable& micro_table(DType weights) {
  if (weights == DType::f16) return *HETNN_CHOSEN(HalvesTable)();
  if (weights == DType::bf16) return *HETNN_CHOSEN(BrainsTable)();
  return *HETNN_CHOSEN(Table)();
}
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
