// Convolution tiles of groups of four or eight channels for each instruction set.
//
// A vector of outputs belongs to several groups. Their inputs stand side by side, and so are read at once; for each of
// a group's inputs the vector in which every lane holds its own group's is a permutation of what was read. In rows of
// windows of three columns each column is permuted once, for all windows that meet it.
#include "hetnn/kernels/conv/sliding_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hetnn/kernels/conv/grouped.cpp"
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

// How the inputs of a vector's groups come into its lanes: by permutations, or by reading each input of the one group
// that has all lanes.
enum class Way { permuted, single };

// As many sums under way as hide the latency of a multiplication, beside as many inputs where they are permuted.
constexpr int PixelsOf(Way way) {
  return HWY_TARGET == HWY_SCALAR ? 1 : HWY_TARGET == HWY_AVX3 || way == Way::single ? 8 : 4;
}

// Of four or eight outputs: 16 divisions would take as long as a tile's products.
HWY_INLINE int OutputsShift(const SlidingTile& t) { return t.group_outputs == 8 ? 3 : 2; }

// Of a group's inputs the one that is multiplied, and where the lanes of a vector find their own group's.
class GroupInput {
 public:
  explicit HWY_INLINE GroupInput(const SlidingTile& t)
      : lanes_(hn::Mul(hn::ShiftRightSame(hn::Iota(DI(), 0), OutputsShift(t)),
                       hn::Set(DI(), static_cast<int32_t>(t.group_inputs)))) {}
  HWY_INLINE void Next() {
    lanes_ = hn::Add(lanes_, hn::Set(DI(), 1));
    ++k_;
  }
  template <Way kWay>
  HWY_INLINE VF In(const float* inputs) const {
    if constexpr (kWay == Way::single) return hn::Set(DF(), inputs[k_]);
    return Of(hn::LoadU(DF(), inputs));
  }
  HWY_INLINE VF Of(VF inputs) const { return hn::TableLookupLanes(inputs, hn::IndicesFromVec(DF(), lanes_)); }

 private:
  using DI = hn::RebindToSigned<DF>;
  hn::VFromD<DI> lanes_;
  int64_t k_ = 0;
};

// Sums of pixels for the channels from `channel` on, out: a function of its own, as there are many kinds of tiles.
HWY_NOINLINE void Finish(const SlidingTile& t, int64_t channel, const float* sums, int count) {
  const DF d;
  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
  const auto left = static_cast<size_t>(HWY_MIN(int64_t{kLanes}, t.channels - channel));
  const bool all = left == static_cast<size_t>(kLanes);
  const auto load = [&](const float* from) HWY_ATTR { return all ? hn::LoadU(d, from) : LoadFirst(from, left); };
  const VF bias = t.bias == nullptr ? hn::Zero(d) : load(t.bias + channel);
  const VF slopes = t.slopes == nullptr ? hn::Set(d, 1)
                    : t.slope_step == 0 ? hn::Set(d, *t.slopes)
                                        : load(t.slopes + channel);
  float* out = t.out + channel;
  for (int p = 0; p < count; ++p, sums += kLanes, out += t.ld_out) {
    VF y = hn::Load(d, sums);
    if (t.bias != nullptr) y = hn::Add(y, bias);
    if (t.slopes != nullptr) y = Sloped(y, slopes);
    y = AtMost(hi, AtLeast(lo, y));
    all ? hn::StoreU(y, d, out) : StoreFirst(y, out, left);
  }
}

template <int kCount>
HWY_INLINE void Finish(const SlidingTile& t, int64_t channel, const VF (&sums)[kCount]) {
  HWY_ALIGN float room[kCount * kLanes];
#pragma GCC unroll 8
  for (int p = 0; p < kCount; ++p) hn::Store(sums[p], DF(), room + p * kLanes);
  Finish(t, channel, room, kCount);
}

// Where the inputs of a vector of channels are, how many of them there are, and where its weights are.
struct VectorAt {
  HWY_INLINE VectorAt(const SlidingTile& t, int64_t channel)
      : input((channel >> OutputsShift(t)) * t.group_inputs),
        inputs(static_cast<size_t>(HWY_MIN(int64_t{kLanes}, t.input_channels - input))),
        weights(t.panels + channel / kPanel * t.panel_stride + channel % kPanel) {}
  HWY_INLINE bool whole() const { return inputs == static_cast<size_t>(kLanes); }
  int64_t input;
  size_t inputs;
  const float* weights;
};

// Of kCount pixels kVectors vectors of channels, from `channel` on: as many sums under way as hide the latency of a
// multiplication.
template <int kCount, int kVectors, Way kWay>
HWY_INLINE void Sums(const SlidingTile& t, int64_t channel) {
  const DF d;
  int64_t input[kVectors];
  const float* weights[kVectors];
  VF acc[kVectors][kCount];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const VectorAt at(t, channel + v * kLanes);
    input[v] = at.input;
    weights[v] = at.weights;
#pragma GCC unroll 8
    for (int p = 0; p < kCount; ++p) acc[v][p] = hn::Zero(d);
  }
  const VectorAt last(t, channel + (kVectors - 1) * kLanes);
  const GroupInput first_input(t);
  for (int64_t ky = t.ky_begin; ky < t.ky_end; ++ky) {
    for (int64_t kx = t.kx_begin; kx < t.kx_end; ++kx) {
      const float* const in = t.in + ky * t.ky_stride + kx * t.kx_stride;
      int64_t tap = (ky * t.kernel_w + kx) * t.group_inputs * kPanel;
      VF x[kVectors][kCount];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors && kWay == Way::permuted; ++v) {
#pragma GCC unroll 8
        for (int p = 0; p < kCount; ++p) {
          const float* at = in + input[v] + p * t.pixel_stride;
          x[v][p] = v + 1 < kVectors || last.whole() ? hn::LoadU(d, at) : LoadFirst(at, last.inputs);
        }
      }
      GroupInput group_input = first_input;
#pragma GCC unroll 1
      for (int64_t k = 0; k < t.group_inputs; ++k, tap += kPanel, group_input.Next()) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const VF weight = hn::LoadU(d, weights[v] + tap);
#pragma GCC unroll 8
          for (int p = 0; p < kCount; ++p) {
            const VF of_group =
                kWay == Way::single ? hn::Set(d, in[input[v] + p * t.pixel_stride + k]) : group_input.Of(x[v][p]);
            acc[v][p] = hn::MulAdd(of_group, weight, acc[v][p]);
          }
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) Finish(t, channel + v * kLanes, acc[v]);
}

template <int kCount, Way kWay>
void Grouped(const SlidingTile& t) {
  int64_t channel = 0;
  // A pixel by itself has vectors of other channels beside it, as many as a panel or, of wide vectors, four.
  if constexpr (kCount == 1 && kLanes >= 8) {
    constexpr int64_t kMost = kLanes == kPanel ? 4 : 2;
    for (; channel + (kMost - 1) * kLanes < t.channels; channel += kMost * kLanes) Sums<1, kMost, kWay>(t, channel);
  }
  for (; channel < t.channels; channel += kLanes) Sums<kCount, 1, kWay>(t, channel);
}

// Of a row of kCount pixels a vector of channels. What neighbouring windows read of a column comes into its lanes once,
// and is multiplied by the weights of each window's own column. The first and the last column may lie outside.
template <int kCount, int kStep, Way kWay>
HWY_INLINE void RowSums(const SlidingTile& t, int64_t channel) {
  constexpr int kWidth = 3, kColumns = (kCount - 1) * kStep + kWidth;
  const DF d;
  const VectorAt at(t, channel);
  const GroupInput first_input(t);
  HWY_ALIGN float room[kWay == Way::permuted ? kColumns * kLanes : 1];
  VF acc[kCount];
#pragma GCC unroll 8
  for (int p = 0; p < kCount; ++p) acc[p] = hn::Zero(d);
  for (int64_t ky = t.ky_begin; ky < t.ky_end; ++ky) {
    const float* in = t.in + ky * t.ky_stride + at.input;
    int64_t stride = t.kx_stride;
    if (kWay == Way::permuted && !at.whole()) {
      for (int64_t i = t.kx_begin; i < t.kx_end; ++i)
        hn::Store(LoadFirst(in + i * stride, at.inputs), d, room + i * kLanes);
      in = room;
      stride = kLanes;
    }
    const float* tap = at.weights + ky * kWidth * t.group_inputs * kPanel;
    GroupInput group_input = first_input;
#pragma GCC unroll 1
    for (int64_t k = 0; k < t.group_inputs; ++k, tap += kPanel, group_input.Next()) {
      VF weight[kWidth];
#pragma GCC unroll 3
      for (int kx = 0; kx < kWidth; ++kx) weight[kx] = hn::LoadU(d, tap + kx * t.group_inputs * kPanel);
      const auto add_column = [&](int i) HWY_ATTR {
        const VF x = group_input.template In<kWay>(in + i * stride);
#pragma GCC unroll 3
        for (int kx = i % kStep; kx < kWidth; kx += kStep)
          if (const int p = (i - kx) / kStep; i >= kx && p < kCount) acc[p] = hn::MulAdd(x, weight[kx], acc[p]);
      };
      if (t.kx_begin == 0) add_column(0);
#pragma GCC unroll 16
      for (int i = 1; i + 1 < kColumns; ++i) add_column(i);
      if (t.kx_end == kColumns) add_column(kColumns - 1);
    }
  }
  Finish(t, channel, acc);
}

template <int kCount, int kStep, Way kWay>
void GroupedRow(const SlidingTile& t) {
  for (int64_t channel = 0; channel < t.channels; channel += kLanes) RowSums<kCount, kStep, kWay>(t, channel);
}

template <int kCount, Way kWay>
void SetRows(SlidingFunctions& functions, int64_t step) {
  functions.uncut = step == 1 ? &GroupedRow<kCount, 1, kWay> : &GroupedRow<kCount, 2, kWay>;
  functions.pixels = kCount;
  functions.columns = (kCount - 1) * step + 3;
}

// Tiles of rows of the size of which fewer pixels are computed twice.
template <Way kWay>
SlidingFunctions FunctionsOf([[maybe_unused]] int64_t step, [[maybe_unused]] int64_t width) {
  SlidingFunctions functions{&Grouped<1, kWay>, &Grouped<PixelsOf(kWay), kWay>, PixelsOf(kWay)};
#if HWY_TARGET != HWY_SCALAR
  constexpr int kLeast = kLeastRow, kMost = kLeastRow + 1;
  if (step == 0) return functions;
  if (width >= kMost && (width + kMost - 1) / kMost * kMost < (width + kLeast - 1) / kLeast * kLeast) {
    SetRows<kMost, kWay>(functions, step);
  } else {
    SetRows<kLeast, kWay>(functions, step);
  }
#endif
  return functions;
}

// All lanes of a vector are one group's where it has as many outputs: four or eight.
SlidingFunctions Functions([[maybe_unused]] int64_t outputs, int64_t step, int64_t width) {
  if constexpr (kLanes > 8) {
    return FunctionsOf<Way::permuted>(step, width);
  } else if constexpr (kLanes < 8) {
    return FunctionsOf<Way::single>(step, width);
  } else {
    return outputs == 8 ? FunctionsOf<Way::single>(step, width) : FunctionsOf<Way::permuted>(step, width);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
SlidingFunctions grouped_functions(int64_t outputs, int64_t step, int64_t width) {
  return HETNN_CHOSEN(Functions)(outputs, step, width);
}
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
