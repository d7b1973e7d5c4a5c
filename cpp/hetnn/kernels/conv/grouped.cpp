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

// As many sums under way as hide the latency of a multiplication, beside as many inputs.
constexpr int kPixels = HWY_TARGET == HWY_AVX3 ? 8 : 4;

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

template <int kInputs, int kCount>
void Grouped(const SlidingTile& t) {
  const DF d;
  // Of wide groups a vector belongs to one, whose inputs are read one by one.
  const bool in_one = t.group_outputs >= kLanes;
  const GroupLanes<kInputs> groups(t.group_outputs);
  for (int64_t channel = 0; channel < t.channels; channel += kLanes) {
    const int64_t input = channel / t.group_outputs * kInputs;
    const auto some = static_cast<size_t>(HWY_MIN(int64_t{kLanes}, t.input_channels - input));
    const bool whole = some == static_cast<size_t>(kLanes);
    const float* weights = t.panels + channel / kPanel * t.panel_stride + channel % kPanel;
    VF acc[kCount];
#pragma GCC unroll 8
    for (int p = 0; p < kCount; ++p) acc[p] = hn::Zero(d);
    for (int64_t ky = t.ky_begin; ky < t.ky_end; ++ky) {
      for (int64_t kx = t.kx_begin; kx < t.kx_end; ++kx) {
        const float* in = t.in + ky * t.ky_stride + kx * t.kx_stride + input;
        const float* w = weights + (ky * t.kernel_w + kx) * kInputs * kPanel;
        if (in_one) {
          for (int k = 0; k < kInputs; ++k) {
            const VF weight = hn::LoadU(d, w + k * kPanel);
#pragma GCC unroll 8
            for (int p = 0; p < kCount; ++p)
              acc[p] = hn::MulAdd(hn::Set(d, in[p * t.pixel_stride + k]), weight, acc[p]);
          }
          continue;
        }
        VF x[kCount];
#pragma GCC unroll 8
        for (int p = 0; p < kCount; ++p) {
          const float* at = in + p * t.pixel_stride;
          x[p] = whole ? hn::LoadU(d, at) : LoadFirst(at, some);
        }
#pragma GCC unroll 8
        for (int k = 0; k < kInputs; ++k) {
          const VF weight = hn::LoadU(d, w + k * kPanel);
#pragma GCC unroll 8
          for (int p = 0; p < kCount; ++p) acc[p] = hn::MulAdd(groups.Input(x[p], k), weight, acc[p]);
        }
      }
    }
    const auto left = static_cast<size_t>(HWY_MIN(int64_t{kLanes}, t.channels - channel));
    const bool all = left == static_cast<size_t>(kLanes);
    const VF lo = hn::Set(d, t.lo), hi = hn::Set(d, t.hi);
    const auto load = [&](const float* from) HWY_ATTR { return all ? hn::LoadU(d, from) : LoadFirst(from, left); };
    const VF bias = t.bias == nullptr ? hn::Zero(d) : load(t.bias + channel);
    const VF slopes = t.slopes == nullptr ? hn::Zero(d)
                      : t.slope_step == 0 ? hn::Set(d, *t.slopes)
                                          : load(t.slopes + channel);
#pragma GCC unroll 8
    for (int p = 0; p < kCount; ++p) {
      VF y = t.bias == nullptr ? acc[p] : hn::Add(acc[p], bias);
      if (t.slopes != nullptr) y = Sloped(y, slopes);
      y = AtMost(hi, AtLeast(lo, y));
      float* out = t.out + p * t.ld_out + channel;
      all ? hn::StoreU(y, d, out) : StoreFirst(y, out, left);
    }
  }
}

SlidingFunctions Functions(int64_t inputs) {
  if (inputs == 4) return {&Grouped<4, 1>, &Grouped<4, kPixels>, kPixels};
  return {&Grouped<8, 1>, &Grouped<8, kPixels>, kPixels};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace hetnn::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hetnn::kernels {
SlidingFunctions grouped_functions(int64_t inputs) { return HETNN_CHOSEN(Functions)(inputs); }
}  // namespace hetnn::kernels
#endif  // HWY_ONCE
