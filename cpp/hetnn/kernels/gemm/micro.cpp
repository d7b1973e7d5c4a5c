// The microkernel for each instruction set.
#include "hetnn/kernels/gemm/micro.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/gemm/micro.cpp"
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

constexpr int kVectorsPerPanel = static_cast<int>(kPanel) / kLanes;

// Products that are summed one by one before their sum joins the others': the error grows with the square root of this
// instead of that of all. Rarely enough to cost about a hundredth of the time.
constexpr int64_t kMostSteps = 256;

// Sums under way that hide how long a multiply-add takes.
constexpr int kChains = 8;

template <int kRows, int kVectors>
HWY_INLINE void AddTo(const VF (&acc)[kRows][kVectors], float* HWY_RESTRICT sums, bool has_sums) {
  const DF d;
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      float* at = sums + (r * kVectors + v) * kLanes;
      hn::Store(has_sums ? hn::Add(hn::Load(d, at), acc[r][v]) : acc[r][v], d, at);
    }
  }
}

// The accumulators must stay in registers: every loop over rows and vectors has constant bounds and is unrolled in
// full. Every kParts-th step of k has a sum of its own.
template <int kRows, int kPanels, int kParts = 1>
void Micro(const MicroTile& t) {
  constexpr int kVectors = kPanels * kVectorsPerPanel;
  const DF d;
  VF parts[kParts][kRows][kVectors];
  VF(&acc)[kRows][kVectors] = parts[0];
  const auto columns_of = [&](int v) { return t.cols - static_cast<int64_t>(v) * kLanes; };
  const auto clear = [&]() HWY_ATTR {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
        for (int p = 0; p < kParts; ++p) parts[p][r][v] = hn::Zero(d);
      }
    }
  };
  const auto join = [&]() HWY_ATTR {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
        for (int p = 1; p < kParts; ++p) parts[0][r][v] = hn::Add(parts[0][r][v], parts[p][r][v]);
      }
    }
  };
  clear();

  // What was summed so far, once there is more of it than one run of kMostSteps.
  float* HWY_RESTRICT sums = t.sums;
  bool has_sums = false;
  const float* HWY_RESTRICT b = t.panel;
  const float* prefetch = t.prefetch;
  const int64_t panel_stride = t.panel_stride;
  int64_t steps = 0;
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const float* HWY_RESTRICT a[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
      a[r] = reinterpret_cast<const float*>(t.rows[tap * t.rows_stride + r]) + t.row_offset;
    for (int64_t k = 0; k < t.k;) {
      if (steps == kMostSteps) {
        join();
        AddTo<kRows, kVectors>(acc, sums, has_sums);
        clear();
        has_sums = true;
        steps = 0;
      }
      const int64_t end = HWY_MIN(t.k, k + kMostSteps - steps);
      steps += end - k;
      const auto weights = [&](int part, int v) HWY_ATTR {
        return hn::Load(d, b + part * kPanel + (v / kVectorsPerPanel) * panel_stride + (v % kVectorsPerPanel) * kLanes);
      };
      if constexpr (kParts > 1) {
        static_assert(kRows == 1);
#pragma GCC unroll 1
        for (; end - k >= kParts; k += kParts) {
#pragma GCC unroll 16
          for (int p = 0; p < kParts; ++p) {
            const VF x = hn::Set(d, a[0][k + p]);
#pragma GCC unroll 16
            for (int v = 0; v < kVectors; ++v) parts[p][0][v] = hn::MulAdd(x, weights(p, v), parts[p][0][v]);
          }
          b += kParts * kPanel;
        }
      }
      for (; k < end; ++k) {
        if constexpr (kRows == 1) {  // nothing reads a weight again that would be worth a register
          const VF x = hn::Set(d, a[0][k]);
#pragma GCC unroll 16
          for (int v = 0; v < kVectors; ++v) acc[0][v] = hn::MulAdd(x, weights(0, v), acc[0][v]);
        } else {
          VF w[kVectors];
#pragma GCC unroll 16
          for (int v = 0; v < kVectors; ++v) w[v] = weights(0, v);
#pragma GCC unroll 16
          for (int r = 0; r < kRows; ++r) {
            const VF x = hn::Set(d, a[r][k]);
#pragma GCC unroll 16
            for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(x, w[v], acc[r][v]);
          }
        }
        b += kPanel;
        __builtin_prefetch(prefetch, 0, 2);
        prefetch += t.prefetch_step;
      }
    }
  }
  join();
  if (has_sums) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) acc[r][v] = hn::Add(acc[r][v], hn::Load(d, sums + (r * kVectors + v) * kLanes));
    }
  }

  // What is added to the sum comes last, however large it is: every rounding before is one of the sum's own size.
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const int64_t columns = columns_of(v);
    const auto load = [&](const float* from) HWY_ATTR {
      return columns >= kLanes ? hn::LoadU(d, from) : LoadFirst(from, static_cast<size_t>(columns));
    };
    if (t.bias != nullptr && columns > 0) {
      const VF bias = load(t.bias + v * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) acc[r][v] = hn::Add(acc[r][v], bias);
    }
    if (t.addend != nullptr && columns > 0) {
      const VF scale = hn::Set(d, t.addend_scale);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
        acc[r][v] = hn::MulAdd(load(t.addend + v * kLanes + r * t.ld_addend), scale, acc[r][v]);
    }
  }

  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const int64_t columns = columns_of(v);
    float* out = t.out + v * kLanes;
    if (columns >= kLanes) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) hn::StoreU(AtMost(hi, AtLeast(lo, acc[r][v])), d, out + r * t.ld_out);
    } else if (columns > 0) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
        StoreFirst(AtMost(hi, AtLeast(lo, acc[r][v])), out + r * t.ld_out, static_cast<size_t>(columns));
    }
  }
}

template <int kPanels, int... kRow>
constexpr void Fill(MicroTable& table, std::integer_sequence<int, kRow...>) {
  table.max_rows[kPanels] = static_cast<int>(sizeof...(kRow));
  ((table.run[kPanels][kRow + 1] = &Micro<kRow + 1, kPanels>), ...);
  table.run_lone[kPanels] = &Micro<1, kPanels, HWY_MAX(1, kChains / (kPanels * kVectorsPerPanel))>;
}

// As many accumulators as leave registers for one row of weights and one broadcast: 32 registers of 16 lanes, 16 of 8,
// and 32 (NEON) or 16 (emulated) of 4.
constexpr MicroTable MakeTable() {
  MicroTable table{};
#if HWY_TARGET == HWY_AVX3
  Fill<1>(table, std::make_integer_sequence<int, 14>());
  Fill<2>(table, std::make_integer_sequence<int, 14>());
  Fill<4>(table, std::make_integer_sequence<int, 6>());
#elif HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON
  Fill<1>(table, std::make_integer_sequence<int, 6>());
#if HWY_TARGET == HWY_AVX2
  Fill<2>(table, std::make_integer_sequence<int, 1>());
  Fill<4>(table, std::make_integer_sequence<int, 1>());
#endif
#else
  Fill<1>(table, std::make_integer_sequence<int, 2>());
#endif
  return table;
}

const MicroTable* Table() {
  static constexpr MicroTable kTable = MakeTable();
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const MicroTable& micro_table() { return *HETNN_CHOSEN(Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
