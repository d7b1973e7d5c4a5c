// The operations over batches for each instruction set.
#include "hetnn/kernels/norm/batch_ops.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/norm/batch_ops.cpp"
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

// Vectors per accumulator, of which there are four, before their sum goes into the double.
constexpr int64_t kAdditions = 16;

/// Sums of u and of u w over `count` vectors, terms(i, &u, &w) each; take(vector of u's sums, of products) now and
/// then.
template <typename Terms, typename Take>
HWY_INLINE void SumPairs(int64_t count, const Terms& terms, const Take& take) {
  const DF d;
  for (int64_t begin = 0; begin < count; begin += 4 * kAdditions) {
    const int64_t end = std::min(count, begin + 4 * kAdditions);
    VF s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, p0 = s0, p1 = s0, p2 = s0, p3 = s0;
    VF u, w;
    int64_t i = begin;
    for (; i + 4 <= end; i += 4) {
      terms(i, u, w), s0 = hn::Add(s0, u), p0 = hn::MulAdd(u, w, p0);
      terms(i + 1, u, w), s1 = hn::Add(s1, u), p1 = hn::MulAdd(u, w, p1);
      terms(i + 2, u, w), s2 = hn::Add(s2, u), p2 = hn::MulAdd(u, w, p2);
      terms(i + 3, u, w), s3 = hn::Add(s3, u), p3 = hn::MulAdd(u, w, p3);
    }
    for (; i < end; ++i) terms(i, u, w), s0 = hn::Add(s0, u), p0 = hn::MulAdd(u, w, p0);
    take(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(p0, p1), hn::Add(p2, p3)));
  }
}

// Of columns [c, c + n), one a lane.
template <typename Terms>
HWY_INLINE void ColumnPairs(int64_t rows, size_t n, const Terms& terms, double* sums, double* products) {
  HWY_ALIGN float lanes[2][kLanes];
  SumPairs(rows, terms, [&](VF sum, VF product) HWY_ATTR {
    const DF d;
    hn::Store(sum, d, lanes[0]);
    hn::Store(product, d, lanes[1]);
    for (size_t k = 0; k < n; ++k) sums[k] += lanes[0][k], products[k] += lanes[1][k];
  });
}

/// f(first column, load) for each vector of columns; load(pointer) reads those of one row, zeros behind the last.
template <typename F>
HWY_INLINE void ForColumns(int64_t cols, const F& f) {
  int64_t c = 0;
  for (; c + kLanes <= cols; c += kLanes)
    f(c, static_cast<size_t>(kLanes), [](const float* at) HWY_ATTR { return hn::LoadU(DF(), at); });
  const auto n = static_cast<size_t>(cols - c);
  if (n > 0) f(c, n, [n](const float* at) HWY_ATTR { return LoadFirst(at, n); });
}

void Moments(const float* x, int64_t ld, int64_t rows, int64_t cols, const float* shift, double* sums,
             double* squares) {
  ForColumns(cols, [&](int64_t c, size_t n, const auto& load) HWY_ATTR {
    const VF s = load(shift + c);
    const auto terms = [&](int64_t r, VF& u, VF& w) HWY_ATTR { w = u = hn::Sub(load(x + r * ld + c), s); };
    ColumnPairs(rows, n, terms, sums + c, squares + c);
  });
}

void Products(const float* g, int64_t ld_g, const float* x, int64_t ld_x, int64_t rows, int64_t cols,
              const float* shift, double* sums, double* products) {
  ForColumns(cols, [&](int64_t c, size_t n, const auto& load) HWY_ATTR {
    const VF s = load(shift + c);
    const auto terms = [&](int64_t r, VF& u, VF& w) HWY_ATTR {
      u = load(g + r * ld_g + c);
      w = hn::Sub(load(x + r * ld_x + c), s);
    };
    ColumnPairs(rows, n, terms, sums + c, products + c);
  });
}

HWY_INLINE VF Combined(VF g, VF x, VF shift, VF a, VF b, VF d) {
  return hn::MulAdd(g, a, hn::MulAdd(hn::Sub(x, shift), b, d));
}

void Combine(const float* g, int64_t ld_g, const float* x, int64_t ld_x, float* y, int64_t ld_y, int64_t rows,
             int64_t cols, const float* shift, const float* a, const float* b, const float* d) {
  ForColumns(cols, [&](int64_t c, size_t n, const auto& load) HWY_ATTR {
    const VF vs = load(shift + c), va = load(a + c), vb = load(b + c), vd = load(d + c);
    for (int64_t r = 0; r < rows; ++r) {
      const VF out = Combined(load(g + r * ld_g + c), load(x + r * ld_x + c), vs, va, vb, vd);
      if (n == static_cast<size_t>(kLanes)) {
        hn::StoreU(out, DF(), y + r * ld_y + c);
      } else {
        StoreFirst(out, y + r * ld_y + c, n);
      }
    }
  });
}

void LineProducts(const float* g, const float* x, int64_t n, float shift, double* sum, double* product) {
  const DF d;
  const VF s = Const(shift);
  const auto take = [&](VF sums, VF products) HWY_ATTR {
    *sum += hn::GetLane(hn::SumOfLanes(d, sums));
    *product += hn::GetLane(hn::SumOfLanes(d, products));
  };
  const int64_t whole = n / kLanes;
  const auto terms = [&](int64_t i, VF& u, VF& w) HWY_ATTR {
    u = hn::LoadU(d, g + i * kLanes);
    w = hn::Sub(hn::LoadU(d, x + i * kLanes), s);
  };
  SumPairs(whole, terms, take);
  const auto rest = static_cast<size_t>(n - whole * kLanes);
  if (rest == 0) return;
  const VF u = LoadFirst(g + whole * kLanes, rest);
  take(u, hn::Mul(u, hn::Sub(LoadFirst(x + whole * kLanes, rest), s)));
}

void LineCombine(const float* g, const float* x, float* y, int64_t n, float shift, float a, float b, float d) {
  const DF lanes;
  const VF vs = Const(shift), va = Const(a), vb = Const(b), vd = Const(d);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    hn::StoreU(Combined(hn::LoadU(lanes, g + i), hn::LoadU(lanes, x + i), vs, va, vb, vd), lanes, y + i);
  const auto rest = static_cast<size_t>(n - i);
  if (rest > 0) StoreFirst(Combined(LoadFirst(g + i, rest), LoadFirst(x + i, rest), vs, va, vb, vd), y + i, rest);
}

const BatchOps* Table() {
  static constexpr BatchOps kTable = {&Moments, &Products, &Combine, &LineProducts, &LineCombine};
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const BatchOps& batch_ops() { return *HETNN_CHOSEN(Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
