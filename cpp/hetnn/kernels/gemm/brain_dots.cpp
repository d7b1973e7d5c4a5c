// Tiles of bf16 by dot products of pairs.
#include "hetnn/kernels/gemm/brain_dots.h"

#include "hetnn/base/error.h"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/simd_targets.h"
#include "hwy/highway.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <type_traits>
#include <utility>

#define HETNN_UNIT_ATTR __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace hetnn::kernels {
namespace {

#include "hetnn/kernels/gemm/brain_micro-inl.h"

// The elements of two halves in turns.
alignas(64) constexpr uint16_t kAlternate[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

#define HETNN_UNIT __attribute__((always_inline)) static inline HETNN_UNIT_ATTR
struct Dots {
  static constexpr int kLanes = 16;
  using Sums = __m512;
  using Words = __m512i;
  // GCC 12 takes what instructions without a mask begin with for uninitialized.
  static constexpr __mmask16 kAll = 0xFFFF;
  HETNN_UNIT __m512 Zero() { return _mm512_setzero_ps(); }
  HETNN_UNIT __m512i Line(const std::byte* at) { return _mm512_loadu_si512(at); }
  HETNN_UNIT __m512i Spread(uint32_t word) { return _mm512_set1_epi32(static_cast<int>(word)); }
  HETNN_UNIT __m512 Multiply(__m512 sums, __m512i line, __m512i pair) {
    return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(line), reinterpret_cast<__m512bh>(pair));
  }
  HETNN_UNIT __m512 Biased(__m512 sums, const float* bias) { return _mm512_add_ps(sums, _mm512_loadu_ps(bias)); }
  // Of a NaN the instructions give the second operand.
  HETNN_UNIT __m512 Bounded(__m512 sums, float low, float high) {
    const __m512 y = _mm512_maskz_max_ps(kAll, _mm512_set1_ps(low), sums);
    return _mm512_maskz_min_ps(kAll, _mm512_set1_ps(high), y);
  }
  HETNN_UNIT __m512 Add(__m512 a, __m512 b) { return _mm512_add_ps(a, b); }
  HETNN_UNIT __m512 Load(const uint16_t* from, int64_t count) {
    const __m256i halves = count >= kLanes ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))
                                           : _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1U << count) - 1), from);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, _mm512_maskz_cvtepu16_epi32(kAll, halves), 16));
  }
  HETNN_UNIT __m512 First(__m512i pairs) { return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, pairs, 16)); }
  HETNN_UNIT __m512 Second(__m512i pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
  }
  HETNN_UNIT void AddPairs(uint16_t* out, const uint16_t* addend, float low, float high) {
    const __m512i a = _mm512_loadu_si512(out), b = _mm512_loadu_si512(addend);
    const __m512 first = Bounded(_mm512_add_ps(First(a), First(b)), low, high);
    const __m512 second = Bounded(_mm512_add_ps(Second(a), Second(b)), low, high);
    // Those of one half, then those of the other.
    const auto halves = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
    const __m512i turned = _mm512_maskz_permutexvar_epi16(~__mmask32{0}, _mm512_load_si512(kAlternate), halves);
    _mm512_storeu_si512(out, turned);
  }
  HETNN_UNIT void Store(__m512 sums, uint16_t* out, int64_t count) {
    const auto rounded = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sums));
    if (count >= kLanes) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), rounded);
    } else {
      _mm256_mask_storeu_epi16(out, static_cast<__mmask16>((1U << count) - 1), rounded);
    }
  }
};

}  // namespace

bool multiplies_brain_pairs() {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has && chosen_isa() == HWY_AVX3;
}

const BrainMicroTable& brain_dots_table() {
  static constexpr BrainMicroTable kTable = [] {
    BrainMicroTable table{};
    FillBrains<Dots, 1>(table, std::make_integer_sequence<int, kMaxTileRows>());
    FillBrains<Dots, 2>(table, std::make_integer_sequence<int, kMaxTileRows>());
    return table;
  }();
  return kTable;
}

}  // namespace hetnn::kernels

#else

namespace hetnn::kernels {

bool multiplies_brain_pairs() { return false; }
const BrainMicroTable& brain_dots_table() { HETNN_ASSERT(false, "no processor of this kind multiplies pairs"); }

}  // namespace hetnn::kernels

#endif
