// Tiles over the planes of an image for each instruction set.
#include "hetnn/kernels/conv/planes_tile.h"

#include <array>
#include <utility>

#include "hetnn/kernels/gemm/split.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/conv/planes_tile.cpp"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/foreach_target.h"
// After foreach_target.h, which sets the target.
#include "hetnn/kernels/move/transpose-inl.h"
#include "hetnn/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hetnn::kernels {
namespace HWY_NAMESPACE {
namespace {

// As many sums as leave registers for the pixels and one weight.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kMostOutputs = 8, kMostVectors = 3;
#elif HWY_TARGET == HWY_AVX2
constexpr int kMostOutputs = 4, kMostVectors = 3;
#else
constexpr int kMostOutputs = 2, kMostVectors = 1;
#endif

// Some outputs of some vectors of pixels; all sums stay in registers.
template <int kOutputs, int kVectors>
void PlaneSums(const PlanesTile& t, int64_t output, int64_t pixel) {
  const DF d;
  VF acc[kOutputs][kVectors];
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[o][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT weights = t.panel + output;
  for (int64_t k = 0; k < t.products; ++k, weights += kPanel) {
    const float* HWY_RESTRICT from = t.taps[k] + t.first_pixel + pixel;
    VF x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, from + v * kLanes);
#pragma GCC unroll 8
    for (int o = 0; o < kOutputs; ++o) {
      const VF weight = hn::Set(d, weights[o]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[o][v] = hn::MulAdd(x[v], weight, acc[o][v]);
    }
  }
  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
  float* sums = t.sums + output * kPlanesPixels + pixel;
#pragma GCC unroll 8
  for (int o = 0; o < kOutputs; ++o) {
    const VF bias = t.bias == nullptr ? hn::Zero(d) : hn::Set(d, t.bias[output + o]);
    const VF slope = hn::Set(d, t.slopes == nullptr ? 1.0f : t.slopes[(output + o) * t.slope_step]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      VF y = acc[o][v];
      if (t.bias != nullptr) y = hn::Add(y, bias);
      if (t.slopes != nullptr) y = Sloped(y, slope);
      if (t.bounded) y = AtMost(hi, AtLeast(lo, y));
      hn::Store(y, d, sums + o * kPlanesPixels + v * kLanes);
    }
  }
}

using SumsFunction = void (*)(const PlanesTile&, int64_t, int64_t);

template <int... kIndex>
constexpr std::array<SumsFunction, sizeof...(kIndex)> SumsTable(std::integer_sequence<int, kIndex...>) {
  return {&PlaneSums<kIndex / kMostVectors + 1, kIndex % kMostVectors + 1>...};
}

void Compute(const PlanesTile& t) {
  static constexpr auto kTable = SumsTable(std::make_integer_sequence<int, kMostOutputs * kMostVectors>());
  const int64_t vectors = (t.pixels + kLanes - 1) / kLanes;
  for (int64_t begin = 0; begin < t.outputs; begin += t.part_outputs) {
    const int64_t count = HWY_MIN(t.part_outputs, t.outputs - begin);
    for (int64_t v = 0; v < vectors; v += kMostVectors) {
      const int64_t wide = HWY_MIN(int64_t{kMostVectors}, vectors - v);
      kTable[static_cast<size_t>((count - 1) * kMostVectors + wide - 1)](t, begin, v * kLanes);
    }
  }
}

#if HWY_TARGET == HWY_AVX3
// Sixteen pixels of four times kFours outputs: fours within each quarter of a vector, then the quarters.
template <int kFours>
HWY_INLINE void WriteSixteen(const float* sums, size_t outputs, int64_t pixels, float* out, int64_t pitch) {
  const DF d;
  const hn::Repartition<double, DF> wide;
  VF fours[4][4];
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    if (g >= kFours) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) fours[g][j] = hn::Zero(d);
      continue;
    }
    VF row[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) row[i] = hn::Load(d, sums + (4 * g + i) * kPlanesPixels);
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const auto pair = [&](VF a, VF b) HWY_ATTR {
        return hn::BitCast(wide, j == 0 ? hn::InterleaveLower(d, a, b) : hn::InterleaveUpper(d, a, b));
      };
      const auto low = pair(row[0], row[1]), high = pair(row[2], row[3]);
      fours[g][2 * j] = hn::BitCast(d, hn::InterleaveLower(wide, low, high));
      fours[g][2 * j + 1] = hn::BitCast(d, hn::InterleaveUpper(wide, low, high));
    }
  }
  const auto mask = hn::FirstN(d, outputs);
  const bool whole = outputs == 16;
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const auto even = [](VF a, VF b) HWY_ATTR { return VF{_mm512_shuffle_f32x4(a.raw, b.raw, 0x88)}; };
    const auto odd = [](VF a, VF b) HWY_ATTR { return VF{_mm512_shuffle_f32x4(a.raw, b.raw, 0xDD)}; };
    const VF a = even(fours[0][j], fours[1][j]), b = odd(fours[0][j], fours[1][j]);
    const VF c = kFours > 2 ? even(fours[2][j], fours[3][j]) : hn::Zero(d);
    const VF e = kFours > 2 ? odd(fours[2][j], fours[3][j]) : hn::Zero(d);
    const VF made[4] = {even(a, c), even(b, e), odd(a, c), odd(b, e)};
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const int pixel = 4 * q + j;
      if (pixel >= pixels) continue;
      whole ? hn::StoreU(made[q], d, out + pixel * pitch) : hn::BlendedStore(made[q], mask, d, out + pixel * pitch);
    }
  }
}

void Write(const float* sums, int64_t outputs, int64_t pixels, float* out, int64_t pitch) {
  const auto some = static_cast<size_t>(outputs);
  for (int64_t p = 0; p < pixels; p += 16, sums += 16, out += 16 * pitch) {
    if (outputs > 12) {
      WriteSixteen<4>(sums, some, pixels - p, out, pitch);
    } else if (outputs > 8) {
      WriteSixteen<3>(sums, some, pixels - p, out, pitch);
    } else {
      WriteSixteen<2>(sums, some, pixels - p, out, pitch);
    }
  }
}
#else
void Write(const float* sums, int64_t outputs, int64_t pixels, float* out, int64_t pitch) {
  Transpose(sums, kPlanesPixels, out, pitch, outputs, pixels);
}
#endif

void Halve(const float* line, int64_t count, float* to, int64_t to_ld) {
  int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const DF d;
  for (; i + kLanes <= count; i += kLanes) {
    const VF low = hn::LoadU(d, line + 2 * i), high = hn::LoadU(d, line + 2 * i + kLanes);
    hn::StoreU(hn::ConcatEven(d, high, low), d, to + i);
    hn::StoreU(hn::ConcatOdd(d, high, low), d, to + to_ld + i);
  }
#endif
  for (; i < count; ++i) {
    to[i] = line[2 * i];
    to[to_ld + i] = line[2 * i + 1];
  }
}

const PlanesFunctions* Functions() {
  static constexpr PlanesFunctions kFunctions = {kMostOutputs, &Compute, &Write, &Halve};
  return &kFunctions;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const PlanesFunctions& planes_functions() { return *HETNN_CHOSEN(Functions)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
