// Products with weights in blocks, for each instruction set.
#include "hetnn/kernels/gemm/block_micro.h"

#include <cmath>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/gemm/block_micro.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/integer_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

using DU = hn::Rebind<uint8_t, DI>;
using DH = hn::Rebind<hwy::float16_t, DF>;

// Columns [v, v + kLanes) of what belongs to a block of the panel.
HWY_INLINE VF Scales(const BlockPanel& p, int64_t b, int64_t v) {
  const std::byte* at = p.scales + b * p.scale_bytes();
  if (p.half) return hn::PromoteTo(DF(), hn::LoadU(DH(), reinterpret_cast<const hwy::float16_t*>(at) + v));
  return hn::LoadU(DF(), reinterpret_cast<const float*>(at) + v);
}
HWY_INLINE VI Zeros(const BlockPanel& p, int64_t b, int64_t v) {
  if (p.zeros == nullptr) return hn::Set(DI(), 1 << (p.bits - 1));
  return hn::PromoteTo(DI(), hn::LoadU(DU(), p.zeros + b * kPanel + v));
}
HWY_INLINE VI Bytes(const std::byte* at) { return hn::LoadU(DI(), reinterpret_cast<const int32_t*>(at)); }

// Four codes a lane times four bytes of x, added to a sum.
#if HWY_TARGET == HWY_AVX2
// Sums of two products of at most 4 bits fit into 16.
struct Few {
  static constexpr int64_t kMostRows = 2;
  static constexpr int kMostBits = 4;
  static HWY_INLINE VI Add(VI sum, VI codes, VI digits) {
    return VI{_mm256_add_epi32(sum.raw,
                               _mm256_madd_epi16(_mm256_maddubs_epi16(codes.raw, digits.raw), _mm256_set1_epi16(1)))};
  }
};
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
struct Any {
  static constexpr int64_t kMostRows = std::numeric_limits<int64_t>::max();
  static constexpr int kMostBits = 8;
  static HWY_INLINE VI Add(VI sum, VI codes, VI digits) { return Quads::Add(sum, codes, digits); }
};

// Vectors of columns side by side, so that few loads of x serve many products.
constexpr int kVectorsPerPanel = static_cast<int>(kPanel) / kLanes;
constexpr int kVectorsOfTile = 2, kPanels = kVectorsOfTile / kVectorsPerPanel;
// Of one row, whose products leave registers where there are 32.
constexpr int kVectorsOfLone = HWY_TARGET == HWY_AVX3 ? 4 : 2, kLonePanels = kVectorsOfLone / kVectorsPerPanel;

// How far ahead codes are brought near.
constexpr int64_t kAhead_bytes = 4096;

// kBits: 4, or 0 where only the panels say them.
template <typename Products, int kRows, int kBits = 0, int kVectors = kVectorsOfTile>
void RunTile(const BlockTile& t) {
  const DF d;
  const DI di;
  const int64_t steps = t.panels[0].block / 4, ld_digits = t.blocks * steps * kDigits;
  const int bits = kBits > 0 ? kBits : t.panels[0].bits;
  const VI mask = hn::Set(di, static_cast<int32_t>(((1U << bits) - 1) * 0x01010101U));
  const std::byte* codes[kVectors];
  for (int v = 0; v < kVectors; ++v)
    codes[v] = t.panels[v / kVectorsPerPanel].codes + v % kVectorsPerPanel * kLanes * 4;
  const int32_t* digits = t.digits;
  VF y[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) y[r][v] = hn::Zero(d);
  for (int64_t b = 0; b < t.blocks; ++b) {
    const BlockUnit* units = t.units + b;
    VI sums[kRows][kVectors][kDigits];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 16
        for (int k = 0; k < kDigits; ++k) sums[r][v][k] = hn::Set(di, units[r * t.blocks].sums[k]);
    if (t.panels[0].zeros != nullptr) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        const VI more = hn::Sub(Zeros(t.panels[v / kVectorsPerPanel], b, v % kVectorsPerPanel * kLanes),
                                hn::Set(di, 1 << (bits - 1)));
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
          for (int k = 0; k < kDigits; ++k)
            sums[r][v][k] = hn::Add(sums[r][v][k], hn::ShiftRightSame(hn::Mul(more, sums[r][v][k]), bits - 1));
      }
    }
#pragma GCC unroll 1
    for (int64_t step = 0; step < steps; step += 8 / bits) {
      VI bytes[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        bytes[v] = Bytes(codes[v]);
        __builtin_prefetch(codes[v] + kAhead_bytes);
        codes[v] += kPanel * 4;
      }
      const auto multiply = [&]() HWY_ATTR {
        VI fours[kVectors];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          fours[v] = hn::And(bytes[v], mask);
          bytes[v] = hn::ShiftRightSame(bytes[v], bits);
        }
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
          for (int k = 0; k < kDigits; ++k) {
            const VI x = hn::Set(di, digits[r * ld_digits + k]);
#pragma GCC unroll 16
            for (int v = 0; v < kVectors; ++v) sums[r][v][k] = Products::Add(sums[r][v][k], fours[v], x);
          }
        digits += kDigits;
      };
      if constexpr (kBits == 4) {
        multiply();
        multiply();
      } else {
#pragma GCC unroll 1
        for (int bit = 0; bit < 8; bit += bits) multiply();
      }
    }
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const VF scale = Scales(t.panels[v / kVectorsPerPanel], b, v % kVectorsPerPanel * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const auto& sum = sums[r][v];
        const VI low = hn::Add(hn::ShiftLeft<8>(sum[1]), sum[0]);
        const VF all = hn::MulAdd(hn::ConvertTo(d, sum[2]), Const(65536), hn::ConvertTo(d, low));
        y[r][v] = hn::MulAdd(hn::Mul(all, Const(units[r * t.blocks].unit)), scale, y[r][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const int64_t columns = HWY_MIN(kLanes, t.cols - v * kLanes);
    if (columns <= 0) break;
    const VF bias = t.bias == nullptr   ? hn::Zero(d)
                    : columns == kLanes ? hn::LoadU(d, t.bias + v * kLanes)
                                        : LoadFirst(t.bias + v * kLanes, static_cast<size_t>(columns));
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      float* out = t.out + r * t.ld_out + v * kLanes;
      if (columns == kLanes) {
        hn::StoreU(hn::Add(y[r][v], bias), d, out);
      } else {
        StoreFirst(hn::Add(y[r][v], bias), out, static_cast<size_t>(columns));
      }
    }
  }
}

// The power of two that brings the largest below 2^22, so that three signed bytes hold all of them.
BlockUnit Split(const float* x, int64_t count, int64_t block, int bits, int32_t* digits) {
  constexpr int kBits = 22, kLeastExponent = -100;
  const DF d;
  const auto elements = [&](int64_t k) HWY_ATTR {
    return count - k >= kLanes ? hn::LoadU(d, x + k) : LoadFirst(x + k, static_cast<size_t>(HWY_MAX(count - k, 0)));
  };
  VF most = hn::Zero(d), check = hn::Zero(d);
  for (int64_t k = 0; k < count; k += kLanes) {
    most = hn::Max(most, hn::Abs(elements(k)));
    check = hn::MulAdd(elements(k), hn::Zero(d), check);
  }
  if (hn::GetLane(hn::SumOfLanes(d, check)) != 0) return {std::numeric_limits<float>::quiet_NaN(), {}};
  int exponent;
  std::frexp(hn::GetLane(hn::MaxOfLanes(d, most)), &exponent);
  exponent = HWY_MAX(exponent, kLeastExponent);
  const VF factor = Const(std::ldexp(1.0f, kBits - exponent));
  VI sums[kDigits] = {hn::Zero(DI()), hn::Zero(DI()), hn::Zero(DI())};
  const auto lowest = [](VI v) HWY_ATTR { return hn::ShiftRight<24>(hn::ShiftLeft<24>(v)); };
  for (int64_t k = 0; k < block; k += kLanes, digits += kLanes / 4 * kDigits) {
    VI rest = hn::NearestInt(hn::Mul(elements(k), factor));
    for (int digit = 0; digit < kDigits; ++digit) {
      const VI low = lowest(rest);
      rest = hn::ShiftRight<8>(hn::Sub(rest, low));
      sums[digit] = hn::Add(sums[digit], low);
      HWY_ALIGN int32_t fours[kLanes / 4];
      hn::Store(hn::DemoteTo(DB(), low), DB(), reinterpret_cast<int8_t*>(fours));
      for (int at = 0; at < kLanes / 4; ++at) digits[at * kDigits + digit] = fours[at];
    }
  }
  BlockUnit out{std::ldexp(1.0f, exponent - kBits), {}};
  for (int digit = 0; digit < kDigits; ++digit)
    out.sums[digit] = -(hn::GetLane(hn::SumOfLanes(DI(), sums[digit])) << (bits - 1));
  return out;
}

template <typename Products>
constexpr BlockMicroTable MakeTable() {
  BlockMicroTable table{};
  table.run[1] = &RunTile<Products, 1>;
  table.run_lone_4 = &RunTile<Products, 1, 4, kVectorsOfLone>;
  table.run[2] = &RunTile<Products, 2>;
  if constexpr (kPanels == 2) table.run[4] = &RunTile<Products, 4>;  // of 32 registers
  table.panels = kPanels;
  table.lone_panels = kLonePanels;
  table.most_bits = Products::kMostBits;
  table.most_rows = Products::kMostRows;
  table.split = &Split;
  return table;
}
#endif

const BlockMicroTable* Table() {
#if HWY_TARGET == HWY_AVX3
  static constexpr BlockMicroTable kTable = MakeTable<Any>();
#elif HWY_TARGET == HWY_AVX2
  static constexpr BlockMicroTable kQuads = MakeTable<Any>();
  static constexpr BlockMicroTable kTable = MakeTable<Few>();
  if (has_avx_vnni()) return &kQuads;
#else
  static constexpr BlockMicroTable kTable{};
#endif
  return &kTable;
}

void Expand(const BlockPanel& p, int64_t blocks, float* to) {
  const DF d;
  const DI di;
  const int steps = 8 / p.bits;  // of a group
  const VI mask = hn::Set(di, (1 << p.bits) - 1);
  const std::byte* codes = p.codes;
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t k = 0; k < p.block; k += 4 * steps, codes += kPanel * 4, to += 4 * steps * kPanel) {
      for (int64_t v = 0; v < kPanel; v += kLanes) {
        const VF scale = Scales(p, b, v);
        const VI zero = Zeros(p, b, v);
        const VI bytes = Bytes(codes + v * 4);
        for (int s = 0; s < steps; ++s)
          for (int j = 0; j < 4; ++j) {
            const VI code = hn::And(hn::ShiftRightSame(bytes, 8 * j + p.bits * s), mask);
            hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::Sub(code, zero)), scale), d, to + (4 * s + j) * kPanel + v);
          }
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const BlockMicroTable& block_micro_table() { return *HETNN_CHOSEN_BY(chosen_integer_isa(), Table)(); }
void expand_blocks(const BlockPanel& panel, int64_t blocks, float* to) { HETNN_CHOSEN(Expand)(panel, blocks, to); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
