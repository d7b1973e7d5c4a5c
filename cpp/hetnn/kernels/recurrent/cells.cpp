// Steps of recurrent layers for each instruction set.
#include "hetnn/kernels/recurrent/cells.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/recurrent/cells.cpp"
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

constexpr int64_t kRows = 4;  // whose sums hide the latency of one another's additions
// States that share what is read of the weights, as many as there are registers for.
constexpr int64_t kStates = HWY_TARGET == HWY_AVX3 ? 4 : 2;

// sums[r] += the sum of the lanes of v[r], of each added in the order of SumOfLanes.
#if HWY_TARGET == HWY_AVX3
HWY_INLINE void AddSums(const VF (&v)[4], float* sums) {
  const DF d;
  const auto halves = [d](VF a, VF b)
                          HWY_ATTR { return hn::Add(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a)); };
  const VF ab = halves(v[0], v[1]), ce = halves(v[2], v[3]);
  const VF blocks =
      hn::Add(VF{_mm512_shuffle_f32x4(ab.raw, ce.raw, 0x88)}, VF{_mm512_shuffle_f32x4(ab.raw, ce.raw, 0xDD)});
  const VF pairs = hn::Add(blocks, hn::Shuffle1032(blocks)), all = hn::Add(pairs, hn::Shuffle2301(pairs));
  const __m128 four = _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, all.raw));
  _mm_storeu_ps(sums, _mm_add_ps(_mm_loadu_ps(sums), four));
}
#endif
template <size_t kCount>
HWY_INLINE void AddSums(const VF (&v)[kCount], float* sums) {
  for (size_t r = 0; r < kCount; ++r) sums[r] += hn::GetLane(hn::SumOfLanes(DF(), v[r]));
}

template <int64_t kCount, int64_t kBatch>
HWY_INLINE void Dots(const float* weight, const float* h, int64_t ld_h, int64_t n, float* sums, int64_t ld_sums) {
  const DF d;
  VF total[kBatch][kCount];
#pragma GCC unroll 4
  for (int64_t b = 0; b < kBatch; ++b)
#pragma GCC unroll 4
    for (int64_t r = 0; r < kCount; ++r) total[b][r] = hn::Zero(d);
  const auto add = [&](auto load) HWY_ATTR {
    VF rows[kCount];
#pragma GCC unroll 4
    for (int64_t r = 0; r < kCount; ++r) rows[r] = load(weight + r * n);
#pragma GCC unroll 4
    for (int64_t b = 0; b < kBatch; ++b) {
      const VF state = load(h + b * ld_h);
#pragma GCC unroll 4
      for (int64_t r = 0; r < kCount; ++r) total[b][r] = hn::MulAdd(rows[r], state, total[b][r]);
    }
  };
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) add([k, d](const float* at) HWY_ATTR { return hn::LoadU(d, at + k); });
  if (k < n) {
    const auto rest = static_cast<size_t>(n - k);
    add([k, rest](const float* at) HWY_ATTR { return LoadFirst(at + k, rest); });
  }
#pragma GCC unroll 4
  for (int64_t b = 0; b < kBatch; ++b) AddSums(total[b], sums + b * ld_sums);
}

template <int64_t kBatch>
HWY_INLINE void AddRows(const float* weight, const float* h, int64_t ld_h, int64_t n, int64_t rows, float* sums,
                        int64_t ld_sums) {
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) Dots<kRows, kBatch>(weight + r * n, h, ld_h, n, sums + r, ld_sums);
  for (; r < rows; ++r) Dots<1, kBatch>(weight + r * n, h, ld_h, n, sums + r, ld_sums);
}

void AddProducts(const float* weight, const float* h, int64_t ld_h, int64_t batch, int64_t n, int64_t rows, float* sums,
                 int64_t ld_sums) {
  int64_t b = 0;
  for (; b + kStates <= batch; b += kStates)
    AddRows<kStates>(weight, h + b * ld_h, ld_h, n, rows, sums + b * ld_sums, ld_sums);
  for (; kStates > 2 && b + 2 <= batch; b += 2)
    AddRows<2>(weight, h + b * ld_h, ld_h, n, rows, sums + b * ld_sums, ld_sums);
  for (; b < batch; ++b) AddRows<1>(weight, h + b * ld_h, ld_h, n, rows, sums + b * ld_sums, ld_sums);
}

// f(load, store) for whole vectors and for the rest of n.
template <typename F>
HWY_INLINE void EachVector(int64_t n, F f) {
  const DF d;
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    f([k, d](const float* at) HWY_ATTR { return hn::LoadU(d, at + k); },
      [k, d](VF v, float* at) HWY_ATTR { hn::StoreU(v, d, at + k); });
  }
  if (k < n) {
    const auto rest = static_cast<size_t>(n - k);
    f([k, rest](const float* at) HWY_ATTR { return LoadFirst(at + k, rest); },
      [k, rest](VF v, float* at) HWY_ATTR { StoreFirst(v, at + k, rest); });
  }
}

void Lstm(const float* i, const float* o, const float* f, const float* g, int64_t n, float* cell, float* h) {
  EachVector(n, [=](auto load, auto store) HWY_ATTR {
    const VF kept = hn::MulAdd(Sigmoid(load(f)), load(cell), hn::Mul(Sigmoid(load(i)), Tanh(load(g))));
    store(kept, cell);
    store(hn::Mul(Sigmoid(load(o)), Tanh(kept)), h);
  });
}

void Gru(const float* z, const float* r, const float* fresh, const float* product, const float* before, int64_t n,
         float* h) {
  EachVector(n, [=](auto load, auto store) HWY_ATTR {
    const VF made = Tanh(hn::MulAdd(Sigmoid(load(r)), load(product), load(fresh)));
    store(hn::MulAdd(Sigmoid(load(z)), hn::Sub(load(before), made), made), h);
  });
}

const CellOps* Table() {
  static constexpr CellOps kTable = {&AddProducts, &Lstm, &Gru};
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const CellOps& cell_ops() { return *HETNN_CHOSEN(Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
