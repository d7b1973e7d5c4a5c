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

template <int64_t kCount>
HWY_INLINE void Dots(const float* weight, const float* h, int64_t n, float* sums) {
  const DF d;
  VF total[kCount];
  for (VF& each : total) each = hn::Zero(d);
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    const VF state = hn::LoadU(d, h + k);
    for (int64_t r = 0; r < kCount; ++r) total[r] = hn::MulAdd(hn::LoadU(d, weight + r * n + k), state, total[r]);
  }
  if (k < n) {
    const auto rest = static_cast<size_t>(n - k);
    const VF state = LoadFirst(h + k, rest);
    for (int64_t r = 0; r < kCount; ++r) total[r] = hn::MulAdd(LoadFirst(weight + r * n + k, rest), state, total[r]);
  }
  for (int64_t r = 0; r < kCount; ++r) sums[r] += hn::GetLane(hn::SumOfLanes(d, total[r]));
}

void AddProducts(const float* weight, const float* h, int64_t n, int64_t rows, float* sums) {
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) Dots<kRows>(weight + r * n, h, n, sums + r);
  for (; r < rows; ++r) Dots<1>(weight + r * n, h, n, sums + r);
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
