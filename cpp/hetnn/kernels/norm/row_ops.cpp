// Row operations for each instruction set.
#include "hetnn/kernels/norm/row_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/norm/row_ops.cpp"
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

// 16 additions per accumulator before its sum goes into the double.
constexpr int64_t kChunk = 64 * kLanes;

// Four accumulators hide the latency of the additions; their order is fixed by n alone.
template <typename Map>
HWY_INLINE double SumMapped(const float* x, int64_t n, Map map) {
  const DF d;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t end = std::min(n, begin + kChunk);
    VF a = hn::Zero(d), b = a, c = a, e = a;
    int64_t i = begin;
    for (; i + 4 * kLanes <= end; i += 4 * kLanes) {
      a = hn::Add(a, map(hn::LoadU(d, x + i)));
      b = hn::Add(b, map(hn::LoadU(d, x + i + kLanes)));
      c = hn::Add(c, map(hn::LoadU(d, x + i + 2 * kLanes)));
      e = hn::Add(e, map(hn::LoadU(d, x + i + 3 * kLanes)));
    }
    for (; i + kLanes <= end; i += kLanes) a = hn::Add(a, map(hn::LoadU(d, x + i)));
    double rest = 0;
    for (; i < end; ++i) rest += hn::GetLane(map(hn::Set(d, x[i])));
    total += hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e)))) + rest;
  }
  return total;
}

double Sum(const float* x, int64_t n) {
  return SumMapped(x, n, [](VF v) HWY_ATTR { return v; });
}

double Squares(const float* x, int64_t n, float shift) {
  const VF s = Const(shift);
  return SumMapped(x, n, [s](VF v) HWY_ATTR {
    const VF centred = hn::Sub(v, s);
    return hn::Mul(centred, centred);
  });
}

template <bool kIsMax>
float Extreme(const float* x, int64_t n) {
  const DF d;
  const float empty = kIsMax ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  VF acc = hn::Set(d, empty);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const VF v = hn::LoadU(d, x + i);
    acc = kIsMax ? MaxNan(acc, v) : MinNan(acc, v);
  }
  HWY_ALIGN float lanes[kLanes];
  hn::Store(acc, d, lanes);
  float result = empty;
  const auto take = [&result](float v) {
    if (std::isnan(v) || (kIsMax ? v > result : v < result)) result = std::isnan(result) ? result : v;
  };
  for (const float lane : lanes) take(lane);
  for (; i < n; ++i) take(x[i]);
  return result;
}

float Max(const float* x, int64_t n) { return Extreme<true>(x, n); }
float Min(const float* x, int64_t n) { return Extreme<false>(x, n); }

void Normalize(const float* x, float* y, int64_t n, float mean, float scale, const float* weight, const float* bias) {
  const DF d;
  const VF m = hn::Set(d, mean), s = hn::Set(d, scale);
  const auto step = [&](int64_t i, size_t lanes, bool tail) HWY_ATTR {
    const auto load = [&](const float* p) HWY_ATTR { return tail ? LoadFirst(p + i, lanes) : hn::LoadU(d, p + i); };
    VF v = hn::Mul(hn::Sub(load(x), m), s);
    if (weight != nullptr) v = hn::Mul(v, load(weight));
    if (bias != nullptr) v = hn::Add(v, load(bias));
    if (tail) {
      StoreFirst(v, y + i, lanes);
    } else {
      hn::StoreU(v, d, y + i);
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) step(i, kLanes, false);
  if (i < n) step(i, static_cast<size_t>(n - i), true);
}

void Scaled(const float* x, float* y, int64_t n, float scale, float shift) {
  const DF d;
  const VF factor = hn::Set(d, scale), summand = hn::Set(d, shift);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), factor, summand), d, y + i);
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    StoreFirst(hn::MulAdd(LoadFirst(x + i, rest), factor, summand), y + i, rest);
  }
}

void Affine(const float* x, int64_t ld_x, float* y, int64_t ld_y, int64_t rows, int64_t cols, const float* scale,
            const float* shift) {
  const DF d;
  for (int64_t r = 0; r < rows; ++r, x += ld_x, y += ld_y) {
    int64_t c = 0;
    for (; c + kLanes <= cols; c += kLanes)
      hn::StoreU(hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, scale + c), hn::LoadU(d, shift + c)), d, y + c);
    if (c < cols) {
      const auto n = static_cast<size_t>(cols - c);
      StoreFirst(hn::MulAdd(LoadFirst(x + c, n), LoadFirst(scale + c, n), LoadFirst(shift + c, n)), y + c, n);
    }
  }
}

void ColumnSums(const float* x, int64_t ld, int64_t rows, int64_t cols, const float* shift, bool square, double* sums) {
  const DF d;
  constexpr int64_t kRowChunk = 64;
  HWY_ALIGN float lanes[kLanes];
  for (int64_t c = 0; c < cols; c += kLanes) {
    const auto n = static_cast<size_t>(std::min<int64_t>(kLanes, cols - c));
    const bool full = n == kLanes;
    const VF s = shift == nullptr ? hn::Zero(d) : full ? hn::LoadU(d, shift + c) : LoadFirst(shift + c, n);
    for (int64_t begin = 0; begin < rows; begin += kRowChunk) {
      const int64_t end = std::min(rows, begin + kRowChunk);
      VF acc = hn::Zero(d);
      for (int64_t r = begin; r < end; ++r) {
        const float* from = x + r * ld + c;
        const VF v = hn::Sub(full ? hn::LoadU(d, from) : LoadFirst(from, n), s);
        acc = square ? hn::MulAdd(v, v, acc) : hn::Add(acc, v);
      }
      hn::Store(acc, d, lanes);
      for (size_t i = 0; i < n; ++i) sums[c + static_cast<int64_t>(i)] += lanes[i];
    }
  }
}

HWY_INLINE float LargestLane(VF v) {
#if HWY_TARGET == HWY_EMU128  // whose MaxOfLanes never gives less than the least finite number
  float result = -std::numeric_limits<float>::infinity();
  for (size_t k = 0; k < static_cast<size_t>(kLanes); ++k) result = std::max(result, hn::ExtractLane(v, k));
  return result;
#else
  return hn::GetLane(hn::MaxOfLanes(DF(), v));
#endif
}

// The largest of n elements, of which at(i, load) is the vector from i on; what a NaN does to it is open, since
// e^(NaN - max) makes the whole softmax NaN in any case.
template <typename At>
HWY_INLINE float MaxForSoftmax(int64_t n, At at) {
  const DF d;
  const auto load = [d](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
  VF a = hn::Set(d, -std::numeric_limits<float>::infinity()), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = hn::Max(a, at(i, load));
    b = hn::Max(b, at(i + kLanes, load));
    c = hn::Max(c, at(i + 2 * kLanes, load));
    e = hn::Max(e, at(i + 3 * kLanes, load));
  }
  for (; i + kLanes <= n; i += kLanes) a = hn::Max(a, at(i, load));
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    const VF last = at(i, [rest](const float* from) HWY_ATTR { return LoadFirst(from, rest); });
    b = hn::IfThenElse(hn::FirstN(d, rest), hn::Max(b, last), b);
  }
  return LargestLane(hn::Max(hn::Max(a, b), hn::Max(c, e)));
}

// y = e^(at - max), returns the sum of y.
template <typename At>
HWY_INLINE float ExpRow(At at, float* y, int64_t n, float max) {
  const DF d;
  const VF m = hn::Set(d, max);
  const auto load = [d](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
  VF a = hn::Zero(d), b = a;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const VF e0 = ExpNonPositive(hn::Sub(at(i, load), m));
    const VF e1 = ExpNonPositive(hn::Sub(at(i + kLanes, load), m));
    hn::StoreU(e0, d, y + i);
    hn::StoreU(e1, d, y + i + kLanes);
    a = hn::Add(a, e0);
    b = hn::Add(b, e1);
  }
  for (; i < n; i += kLanes) {
    // Lanes behind the end are set to e^-inf = 0.
    const auto count = static_cast<size_t>(std::min<int64_t>(kLanes, n - i));
    const VF shifted = hn::Sub(at(i, [count](const float* from) HWY_ATTR { return LoadFirst(from, count); }), m);
    const VF e = hn::IfThenElseZero(hn::FirstN(d, count), ExpNonPositive(shifted));
    StoreFirst(e, y + i, count);
    a = hn::Add(a, e);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

HWY_INLINE void ScaleRow(float* y, int64_t n, float factor) {
  const DF d;
  const VF f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, y + i), f), d, y + i);
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    StoreFirst(hn::Mul(LoadFirst(y + i, rest), f), y + i, rest);
  }
}

void Softmax(const float* x, float* y, int64_t n, bool log) {
  const auto at = [x](int64_t i, auto load) HWY_ATTR { return load(x + i); };
  const float max = MaxForSoftmax(n, at);
  if (!log) {
    ScaleRow(y, n, 1.0f / ExpRow(at, y, n, max));
    return;
  }
  const DF d;
  const VF m = hn::Set(d, max);
  VF acc = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) acc = hn::Add(acc, ExpNonPositive(hn::Sub(hn::LoadU(d, x + i), m)));
  float sum = hn::GetLane(hn::SumOfLanes(d, acc));
  for (; i < n; ++i) sum += hn::GetLane(ExpNonPositive(hn::Set(d, x[i] - max)));
  const float log_sum = std::log(sum);
  for (i = 0; i < n; ++i) y[i] = x[i] - max - log_sum;
}

void SoftmaxColumns(float* x, int64_t n, bool log) {
  const DF d;
  for (int64_t c = 0; c < kSoftmaxColumns; c += kLanes) {
    float* at = x + c;
    VF max = hn::LoadU(d, at);
    for (int64_t i = 1; i < n; ++i) max = MaxNan(max, hn::LoadU(d, at + i * kSoftmaxColumns));
    VF sum = hn::Zero(d);
    for (int64_t i = 0; i < n; ++i) {
      const VF shifted = hn::Sub(hn::LoadU(d, at + i * kSoftmaxColumns), max);
      const VF e = ExpNonPositive(shifted);
      hn::StoreU(log ? shifted : e, d, at + i * kSoftmaxColumns);
      sum = hn::Add(sum, e);
    }
    if (log) {
      HWY_ALIGN float lanes[kLanes];
      hn::Store(sum, d, lanes);
      for (float& lane : lanes) lane = std::log(lane);
      sum = hn::Load(d, lanes);
      for (int64_t i = 0; i < n; ++i)
        hn::StoreU(hn::Sub(hn::LoadU(d, at + i * kSoftmaxColumns), sum), d, at + i * kSoftmaxColumns);
    } else {
      const VF factor = hn::Div(Const(1.0f), sum);
      for (int64_t i = 0; i < n; ++i)
        hn::StoreU(hn::Mul(hn::LoadU(d, at + i * kSoftmaxColumns), factor), d, at + i * kSoftmaxColumns);
    }
  }
}

// Those of `some` bytes, at most kLanes: 0 where they are not 0, else -inf.
HWY_INLINE VF AddedOf(const uint8_t* from, size_t some) {
  const DI di;
  const hn::Rebind<uint8_t, DF> bytes;
  auto allowed = hn::Zero(bytes);
  if (some == kLanes) {
    allowed = hn::LoadU(bytes, from);
  } else {
    HWY_ALIGN uint8_t part[kLanes] = {};
    for (size_t i = 0; i < some; ++i) part[i] = from[i];
    allowed = hn::Load(bytes, part);
  }
  const auto hidden = hn::Eq(hn::PromoteTo(di, allowed), hn::Zero(di));
  return hn::IfThenElseZero(hn::RebindMask(DF(), hidden), Const(-std::numeric_limits<float>::infinity()));
}

// f(at) with the vectors of a row before its softmax.
template <typename F>
HWY_INLINE float WithMask(const MaskedRow& row, VF scale, F f) {
  const float* x = row.x;
  if (row.added != nullptr) {
    const float* added = row.added;
    return f([=](int64_t i, auto load) HWY_ATTR { return hn::Add(hn::Mul(load(x + i), scale), load(added + i)); });
  }
  if (row.allowed != nullptr) {
    const uint8_t* allowed = row.allowed;
    return f([=, n = row.n](int64_t i, auto load) HWY_ATTR {
      const auto some = static_cast<size_t>(HWY_MIN(n - i, int64_t{kLanes}));
      return hn::Add(hn::Mul(load(x + i), scale), AddedOf(allowed + i, some));
    });
  }
  return f([=](int64_t i, auto load) HWY_ATTR { return hn::Mul(load(x + i), scale); });
}

// Step by step of all rows: within a row each step waits for the one before.
void SoftmaxMasked(const MaskedRow* rows, int64_t count, float scale, UndefinedRows undefined) {
  const VF factor = Const(scale);
  float values[kMaskedRows];
  for (int64_t r = 0; r < count; ++r) {
    const int64_t n = rows[r].n;
    values[r] = WithMask(rows[r], factor, [n](auto at) HWY_ATTR { return MaxForSoftmax(n, at); });
  }
  for (int64_t r = 0; r < count; ++r) {
    const MaskedRow& row = rows[r];
    const float max = values[r];
    const bool masked = max == -std::numeric_limits<float>::infinity() && undefined != UndefinedRows::kept;
    values[r] =
        masked ? 0.0f : WithMask(row, factor, [&row, max](auto at) HWY_ATTR { return ExpRow(at, row.x, row.n, max); });
    if (masked || (undefined == UndefinedRows::zeros && values[r] != values[r])) {
      std::fill_n(row.x, row.n, 0.0f);
      values[r] = 1;
    }
  }
  for (int64_t r = 0; r < count; ++r) ScaleRow(rows[r].x, rows[r].n, 1.0f / values[r]);
}

const RowOps* Table() {
  static constexpr RowOps kTable = {
      &Sum, &Squares, &Max, &Min, &Normalize, &Scaled, &Affine, &ColumnSums, &Softmax, &SoftmaxColumns, &SoftmaxMasked};
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const RowOps& row_ops() { return *HETNN_CHOSEN(Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
