// The microkernel of integer products for each instruction set.
#include "hetnn/kernels/gemm/integer_micro.h"

#include <cstring>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/gemm/integer_micro.cpp"
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

constexpr int kVectorsPerPanel = static_cast<int>(kPanel) / kLanes;

HWY_INLINE int32_t Four(const int8_t* at) {
  int32_t four;
  std::memcpy(&four, at, 4);
  return four;
}

// What every row's sums of some columns begin with.
HWY_INLINE VI BaseOf(const IntegerFinish& f, int64_t col) {
  if (f.column_sums == nullptr) return hn::Zero(DI());
  const VI turned = hn::Mul(hn::Set(DI(), f.turned), hn::LoadU(DI(), f.column_sums + col));
  return f.bias == nullptr ? hn::Neg(turned) : hn::Sub(hn::LoadU(DI(), f.bias + col), turned);
}

#if HWY_TARGET != HWY_SCALAR
// Narrow vectors, of which a panel has four, leave it to who asked.
constexpr bool kFinishes = kVectorsPerPanel <= 2;

// The same as Finish, of sums in registers that began with their base, factors below 1, and no terms of rows.
template <int kRows, int kVectors>
HWY_INLINE void FinishTile(const VI (&acc)[kRows][kVectors], const IntegerFinish& f) {
  static_assert(kVectors <= 2);
  constexpr int kRowsAtOnce = 4 / kVectors;
  constexpr int64_t kCols = kVectors * kLanes;
  const ToBytes<false> to_bytes(f.low, f.high, f.zero);
  const BlockOrder order;
  const hn::Half<D8> half;
  HWY_ALIGN int8_t bytes[(kRows + kRowsAtOnce - 1) / kRowsAtOnce * kRowsAtOnce][kCols];
  VF factor[kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) factor[v] = hn::LoadU(DF(), f.factors + v * kLanes);
  // Vector k of four, rows of kVectors vectors; behind the last row, it once more.
  const auto real = [&](int first, int k) HWY_ATTR {
    return hn::Mul(hn::ConvertTo(DF(), acc[HWY_MIN(first + k / kVectors, kRows - 1)][k % kVectors]),
                   factor[k % kVectors]);
  };
  const bool halves = kVectors == 2 && f.cols == kCols;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; r += kRowsAtOnce) {
    const auto v = order.InARow(to_bytes(real(r, 0), real(r, 1), real(r, 2), real(r, 3)));
    if (halves) {
      hn::StoreU(hn::LowerHalf(half, v), half, f.out + r * f.ld_out);
      if (r + 1 < kRows) hn::StoreU(hn::UpperHalf(half, v), half, f.out + (r + 1) * f.ld_out);
    } else {
      hn::Store(v, D8(), bytes[r]);
    }
  }
  if (halves) return;
  int8_t* out = f.out;
#pragma GCC unroll 1
  for (int r = 0; r < kRows; ++r, out += f.ld_out) {
    if (f.cols == kCols) {
      std::memcpy(out, bytes[r], kCols);
    } else {
      std::memcpy(out, bytes[r], static_cast<size_t>(f.cols));
    }
  }
}
#else
constexpr bool kFinishes = false;

template <int kRows, int kVectors>
void FinishTile(const VI (&)[kRows][kVectors], const IntegerFinish&) {}
#endif

// The accumulators must stay in registers: every loop over rows and vectors has constant bounds and is unrolled in
// full.
template <typename Products, bool kFinishes, int kRows, int kPanels>
void SumTile(const IntegerTile& t) {
  constexpr int kVectors = kPanels * kVectorsPerPanel;
  const DI d;
  VI acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int v = 0; v < kVectors; ++v) {
    const VI begin = kFinishes && t.finish != nullptr ? BaseOf(*t.finish, v * kLanes) : hn::Zero(d);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) acc[r][v] = begin;
  }
  const std::byte* HWY_RESTRICT b = t.panel;
  const std::byte* prefetch = t.prefetch;
  const int64_t panel_stride = t.panel_stride;
  const int64_t whole = t.k / 4 * 4;
  // Four elements of each row times as many of each column.
  const auto step = [&](const auto& four_of) HWY_ATTR {
    typename Products::Weights w[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      w[v] =
          Products::OfWeights(hn::Load(d, reinterpret_cast<const int32_t*>(b + (v / kVectorsPerPanel) * panel_stride +
                                                                           (v % kVectorsPerPanel) * kLanes * 4)));
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const typename Products::Row x = Products::OfRow(four_of(r));
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) acc[r][v] = Products::Add(acc[r][v], x, w[v]);
    }
    b += kPanel * 4;
    __builtin_prefetch(prefetch, 0, 2);
    prefetch += t.prefetch_step;
  };
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const int8_t* HWY_RESTRICT a[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
      a[r] = reinterpret_cast<const int8_t*>(t.rows[tap * t.rows_stride + r]) + t.row_offset;
    for (int64_t k = 0; k < whole; k += 4) step([&](int r) HWY_ATTR { return Four(a[r] + k); });
    if (whole < t.k) {
      // What lies behind a row is not read; the weights there are zeros.
      int32_t rest[kRows] = {};
#pragma GCC unroll 1
      for (int r = 0; r < kRows; ++r) std::memcpy(&rest[r], a[r] + whole, static_cast<size_t>(t.k - whole));
      step([&](int r) HWY_ATTR { return rest[r]; });
    }
  }
  if constexpr (kFinishes) {
    if (t.finish != nullptr) return FinishTile<kRows, kVectors>(acc, *t.finish);
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) hn::Store(acc[r][v], d, t.sums + (r * kVectors + v) * kLanes);
  }
}

void Begin(const IntegerFinish& f, int64_t cols, int32_t* base) {
  for (int64_t c = 0; c < cols; c += kLanes) hn::StoreU(BaseOf(f, c), DI(), base + c);
}

#if HWY_TARGET == HWY_AVX3
// Of more columns than a vector has: two rows at once. Quick: of whole vectors and factors below 1, when the sums lack
// nothing.
template <bool kQuick, bool kClamps>
void FinishPairs(const IntegerFinish& f) {
  const DI d;
  const hn::Half<D8> half;
  const ToBytes<!kQuick, kClamps> to_bytes(f.low, f.high, f.zero);
  const BlockOrder order;
  const VI base[2] = {kQuick ? hn::Zero(d) : BaseOf(f, 0), kQuick ? hn::Zero(d) : BaseOf(f, kLanes)};
  const VF factor[2] = {hn::LoadU(DF(), f.factors), hn::LoadU(DF(), f.factors + kLanes)};
  const auto mask = hn::FirstN(half, static_cast<size_t>(f.cols));
  for (int64_t r = 0; r < f.rows; r += 2) {
    const int64_t next = HWY_MIN(r + 1, f.rows - 1);
    const auto real = [&](int64_t row, int v) HWY_ATTR {
      VI sum = hn::LoadU(d, f.sums + row * f.ld_sums + v * kLanes);
      if constexpr (!kQuick) {
        sum = hn::Add(sum, base[v]);
        if (f.row_terms != nullptr) sum = hn::Add(sum, hn::Set(d, f.row_terms[row]));
      }
      return hn::Mul(hn::ConvertTo(DF(), sum), factor[v]);
    };
    const auto bytes = order.InARow(to_bytes(real(r, 0), real(r, 1), real(next, 0), real(next, 1)));
    if constexpr (kQuick) {
      hn::StoreU(hn::LowerHalf(half, bytes), half, f.out + r * f.ld_out);
      hn::StoreU(hn::UpperHalf(half, bytes), half, f.out + next * f.ld_out);
    } else {
      hn::BlendedStore(hn::LowerHalf(half, bytes), mask, half, f.out + r * f.ld_out);
      hn::BlendedStore(hn::UpperHalf(half, bytes), mask, half, f.out + next * f.ld_out);
    }
  }
}
#endif

void Finish(const IntegerFinish& f) {
#if HWY_TARGET == HWY_AVX3
  if (f.cols > kLanes && f.cols <= 2 * kLanes) {
    const bool quick = f.cols == 2 * kLanes && f.below_one && f.column_sums == nullptr && f.row_terms == nullptr;
    if (!quick) return FinishPairs<false, true>(f);
    return f.low > -128 || f.high < 127 ? FinishPairs<true, true>(f) : FinishPairs<true, false>(f);
  }
#endif
  const DI d;
  for (int64_t c = 0; c < f.cols; c += kLanes) {
    const VI base = BaseOf(f, c);
    const VF factor = hn::LoadU(DF(), f.factors + c);
    const int64_t columns = HWY_MIN(kLanes, f.cols - c);
    const auto real = [&](int64_t r) HWY_ATTR {
      VI sum = hn::Add(hn::LoadU(d, f.sums + r * f.ld_sums + c), base);
      if (f.row_terms != nullptr) sum = hn::Add(sum, hn::Set(d, f.row_terms[r]));
      return hn::Mul(hn::ConvertTo(DF(), sum), factor);
    };
    int8_t* out = f.out + c;
#if HWY_TARGET == HWY_SCALAR
    const ToByte to_byte(f.low, f.high, f.zero);
    for (int64_t r = 0; r < f.rows; ++r, out += f.ld_out) StoreBytes(to_byte(real(r)), out, columns);
#else
    // Four rows at once; behind the last, it once more.
    const ToBytes<true> to_bytes(f.low, f.high, f.zero);
    const BlockOrder order;
    const int64_t last = f.rows - 1;
    for (int64_t r = 0; r < f.rows; r += 4) {
      HWY_ALIGN int8_t rows[4][kLanes];
      hn::Store(order.InARow(to_bytes(real(r), real(HWY_MIN(r + 1, last)), real(HWY_MIN(r + 2, last)),
                                      real(HWY_MIN(r + 3, last)))),
                D8(), rows[0]);
      for (int64_t k = 0; k < HWY_MIN(int64_t{4}, f.rows - r); ++k, out += f.ld_out) {
        if (columns == kLanes) {
          std::memcpy(out, rows[k], kLanes);
        } else {
          std::memcpy(out, rows[k], static_cast<size_t>(columns));
        }
      }
    }
#endif
  }
}

void FinishReals(const IntegerFinish& f, const RealFinish& to) {
  for (int64_t c = 0; c < f.cols; c += kLanes) {
    const VI base = BaseOf(f, c);
    const VF factor = hn::LoadU(DF(), f.factors + c);
    const VF bias = to.bias == nullptr ? hn::Zero(DF()) : hn::LoadU(DF(), to.bias + c);
    const int64_t columns = HWY_MIN(kLanes, f.cols - c);
    for (int64_t r = 0; r < f.rows; ++r) {
      VI sum = hn::Add(hn::LoadU(DI(), f.sums + r * f.ld_sums + c), base);
      if (f.row_terms != nullptr) sum = hn::Add(sum, hn::Set(DI(), f.row_terms[r]));
      const VF real = hn::MulAdd(hn::ConvertTo(DF(), sum), factor, bias);
      float* const out = to.out + r * f.ld_out + c;
      if (columns == kLanes) {
        hn::StoreU(real, DF(), out);
      } else {
        StoreFirst(real, out, static_cast<size_t>(columns));
      }
    }
  }
}

template <typename Products>
void SumColumns(const std::byte* panel, int64_t steps, int32_t* sums) {
  const DI d;
  for (int64_t c = 0; c < kPanel; c += kLanes) {
    VI sum = hn::Zero(d);
    for (int64_t step = 0; step < steps; ++step) {
      const VI w = hn::LoadU(d, reinterpret_cast<const int32_t*>(panel) + step * kPanel + c);
      sum = Products::Add(sum, Products::Ones(), Products::OfWeights(w));
    }
    hn::StoreU(sum, d, sums + c);
  }
}

void Interleave(const int8_t* rows, int64_t ld, std::byte* step) {
  auto* to = reinterpret_cast<int8_t*>(step);
#if HWY_TARGET == HWY_SCALAR
  for (int64_t c = 0; c < kPanel; ++c)
    for (int64_t s = 0; s < 4; ++s) to[4 * c + s] = rows[s * ld + c];
#else
  const hn::Full128<int8_t> d;
  const hn::Full128<int16_t> d16;
  const auto row = [&](int64_t s) HWY_ATTR { return hn::LoadU(d, rows + s * ld); };
  const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d, row(0), row(1))),
             high01 = hn::BitCast(d16, hn::InterleaveUpper(d, row(0), row(1))),
             low23 = hn::BitCast(d16, hn::InterleaveLower(d, row(2), row(3))),
             high23 = hn::BitCast(d16, hn::InterleaveUpper(d, row(2), row(3)));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d16, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d16, low01, low23)), d, to + 16);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d16, high01, high23)), d, to + 32);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d16, high01, high23)), d, to + 48);
#endif
}

template <typename Products, bool kFinish, int kPanels, int... kRow>
constexpr void Fill(IntegerTiles& tiles, std::integer_sequence<int, kRow...>) {
  tiles.max_rows[kPanels] = static_cast<int>(sizeof...(kRow));
  ((tiles.run[kPanels][kRow + 1] = &SumTile<Products, kFinish, kRow + 1, kPanels>), ...);
}

// As many accumulators as leave registers for the weights of one step and four bytes of a row.
template <typename Products, int kRowsOfOne, int kRowsOfTwo, bool kFinish>
constexpr IntegerTiles MakeTiles() {
  IntegerTiles tiles{};
  Fill<Products, kFinish, 1>(tiles, std::make_integer_sequence<int, kRowsOfOne>());
  if constexpr (kRowsOfTwo > 0) Fill<Products, kFinish, 2>(tiles, std::make_integer_sequence<int, kRowsOfTwo>());
  return tiles;
}

template <typename Products, int kRowsOfOne, int kRowsOfTwo>
constexpr IntegerMicroTable MakeTable(const char* name) {
  IntegerMicroTable table{};
  static_cast<IntegerTiles&>(table) = MakeTiles<Products, kRowsOfOne, kRowsOfTwo, kFinishes>();
#if HWY_TARGET == HWY_AVX3
  table.words = MakeTiles<Words, 14, 14, false>();
#elif HWY_TARGET == HWY_AVX2
  table.words = MakeTiles<Words, 6, 0, false>();
#endif
  table.finish = &Finish;
  table.finish_reals = &FinishReals;
  table.begin = &Begin;
  table.sum_columns = &SumColumns<Products>;
  table.interleave = &Interleave;
  table.turn = Products::kTurn;
  table.finishes = kFinishes;
  table.name = name;
  return table;
}

const IntegerMicroTable* Table() {
#if HWY_TARGET == HWY_AVX3
  static constexpr IntegerMicroTable kTable = MakeTable<Quads, 14, 14>("AVX-512 VNNI");
#elif HWY_TARGET == HWY_AVX2
  static constexpr IntegerMicroTable kQuads = MakeTable<Quads, 6, 0>("AVX-VNNI");
  static constexpr IntegerMicroTable kTable = MakeTable<Pairs, 4, 0>("AVX2");
  if (has_avx_vnni()) return &kQuads;
#else
  static constexpr IntegerMicroTable kTable = MakeTable<Singles, 1, 0>("plain");
#endif
  return &kTable;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
const IntegerMicroTable& integer_micro_table() { return *HETNN_CHOSEN_BY(chosen_integer_isa(), Table)(); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
