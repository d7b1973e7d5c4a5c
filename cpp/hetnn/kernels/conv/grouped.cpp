// Convolution tiles of groups of four or eight channels for each instruction set.
//
// A vector of outputs belongs to several groups. Their inputs stand side by side, and so are read at once; for each of
// a group's inputs the vector in which every lane holds its own group's is a permutation of what was read.
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
constexpr int PixelsOf(Way way) { return HWY_TARGET == HWY_AVX3 || way == Way::single ? 8 : 4; }

// Where the lanes of a vector find input k of their own group.
template <int kInputs>
class GroupLanes {
 public:
  explicit HWY_INLINE GroupLanes(int64_t group_outputs) {
    HWY_ALIGN int32_t first[kLanes];
    for (int64_t c = 0; c < kLanes; ++c) first[c] = static_cast<int32_t>(c / group_outputs * kInputs);
    const hn::RebindToSigned<DF> di;
#pragma GCC unroll 8
    for (int k = 0; k < kInputs; ++k) of_[k] = hn::IndicesFromVec(DF(), hn::Add(hn::Load(di, first), hn::Set(di, k)));
  }
  HWY_INLINE VF Input(VF x, int k) const { return hn::TableLookupLanes(x, of_[k]); }

 private:
  decltype(hn::IndicesFromVec(DF(), hn::Zero(hn::RebindToSigned<DF>()))) of_[kInputs];
};

// Of kCount pixels kVectors vectors of channels, from `channel` on: as many sums under way as hide the latency of a
// multiplication.
template <int kInputs, int kCount, int kVectors, Way kWay>
HWY_INLINE void Sums(const SlidingTile& t, const GroupLanes<kInputs>& groups, int64_t channel) {
  const DF d;
  int64_t input[kVectors];
  size_t some[kVectors];
  const float* weights[kVectors];
  VF acc[kVectors][kCount];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t of = channel + v * kLanes;
    input[v] = of / t.group_outputs * kInputs;
    some[v] = static_cast<size_t>(HWY_MIN(int64_t{kLanes}, t.input_channels - input[v]));
    weights[v] = t.panels + of / kPanel * t.panel_stride + of % kPanel;
#pragma GCC unroll 8
    for (int p = 0; p < kCount; ++p) acc[v][p] = hn::Zero(d);
  }
  // add(in, tap) for every tap: where the window's column begins, and its weights.
  const auto each_tap = [&](const auto& add) HWY_ATTR {
    for (int64_t ky = t.ky_begin; ky < t.ky_end; ++ky)
      for (int64_t kx = t.kx_begin; kx < t.kx_end; ++kx)
        add(t.in + ky * t.ky_stride + kx * t.kx_stride, (ky * t.kernel_w + kx) * kInputs * kPanel);
  };
  if constexpr (kWay == Way::single) {
    each_tap([&](const float* in, int64_t tap) HWY_ATTR {
      for (int k = 0; k < kInputs; ++k) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const VF weight = hn::LoadU(d, weights[v] + tap + k * kPanel);
#pragma GCC unroll 8
          for (int p = 0; p < kCount; ++p)
            acc[v][p] = hn::MulAdd(hn::Set(d, in[input[v] + p * t.pixel_stride + k]), weight, acc[v][p]);
        }
      }
    });
  } else {
    const bool whole = some[kVectors - 1] == static_cast<size_t>(kLanes);
    each_tap([&](const float* in, int64_t tap) HWY_ATTR {
      VF x[kVectors][kCount];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
        for (int p = 0; p < kCount; ++p) {
          const float* at = in + input[v] + p * t.pixel_stride;
          x[v][p] = whole ? hn::LoadU(d, at) : LoadFirst(at, some[v]);
        }
      }
#pragma GCC unroll 8
      for (int k = 0; k < kInputs; ++k) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const VF weight = hn::LoadU(d, weights[v] + tap + k * kPanel);
#pragma GCC unroll 8
          for (int p = 0; p < kCount; ++p) acc[v][p] = hn::MulAdd(groups.Input(x[v][p], k), weight, acc[v][p]);
        }
      }
    });
  }
  const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t of = channel + v * kLanes;
    const auto left = static_cast<size_t>(HWY_MIN(int64_t{kLanes}, t.channels - of));
    const bool all = v + 1 < kVectors || left == static_cast<size_t>(kLanes);
    const auto load = [&](const float* from) HWY_ATTR { return all ? hn::LoadU(d, from) : LoadFirst(from, left); };
    const VF bias = t.bias == nullptr ? hn::Zero(d) : load(t.bias + of);
    const VF slopes = t.slopes == nullptr ? hn::Zero(d)
                      : t.slope_step == 0 ? hn::Set(d, *t.slopes)
                                          : load(t.slopes + of);
#pragma GCC unroll 8
    for (int p = 0; p < kCount; ++p) {
      VF y = t.bias == nullptr ? acc[v][p] : hn::Add(acc[v][p], bias);
      if (t.slopes != nullptr) y = Sloped(y, slopes);
      y = AtMost(hi, AtLeast(lo, y));
      float* out = t.out + p * t.ld_out + of;
      all ? hn::StoreU(y, d, out) : StoreFirst(y, out, left);
    }
  }
}

template <int kInputs, int kCount, Way kWay>
void Grouped(const SlidingTile& t) {
  const GroupLanes<kInputs> groups(t.group_outputs);
  int64_t channel = 0;
  // A pixel by itself has vectors of other channels beside it, as many as a panel or, of wide vectors, four.
  if constexpr (kCount == 1 && kLanes >= 8) {
    constexpr int64_t kMost = kLanes == kPanel ? 4 : 2;
    for (; channel + (kMost - 1) * kLanes < t.channels; channel += kMost * kLanes)
      Sums<kInputs, 1, kMost, kWay>(t, groups, channel);
    if (kMost > 2 && channel + kLanes < t.channels) {
      Sums<kInputs, 1, 2, kWay>(t, groups, channel);
      channel += 2 * kLanes;
    }
  }
  for (; channel < t.channels; channel += kLanes) Sums<kInputs, kCount, 1, kWay>(t, groups, channel);
}

template <int kInputs, Way kWay>
constexpr SlidingFunctions FunctionsOf() {
  return {&Grouped<kInputs, 1, kWay>, &Grouped<kInputs, PixelsOf(kWay), kWay>, PixelsOf(kWay)};
}

// Groups have four or eight outputs, and no fewer than inputs.
template <int kInputs>
SlidingFunctions OfInputs([[maybe_unused]] int64_t outputs) {
  constexpr int kLeast = kInputs, kMost = 8;
  if constexpr (kLeast >= kLanes) {
    return FunctionsOf<kInputs, Way::single>();
  } else if constexpr (kMost < kLanes) {
    return FunctionsOf<kInputs, Way::permuted>();
  } else {
    return outputs >= kLanes ? FunctionsOf<kInputs, Way::single>() : FunctionsOf<kInputs, Way::permuted>();
  }
}

SlidingFunctions Functions(int64_t inputs, int64_t outputs) {
  return inputs == 4 ? OfInputs<4>(outputs) : OfInputs<8>(outputs);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
SlidingFunctions grouped_functions(int64_t inputs, int64_t outputs) { return HETNN_CHOSEN(Functions)(inputs, outputs); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
