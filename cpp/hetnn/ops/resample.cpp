// Places and weights of resampling.
#include "hetnn/ops/resample.h"

#include "hetnn/base/error.h"

namespace hetnn::ops {
namespace {

// Computed in the type R.
template <typename R>
double place(std::string_view places, const ResampledAxis& axis, int64_t entry) {
  const auto size = static_cast<R>(axis.size), scale = static_cast<R>(axis.scale), at = static_cast<R>(entry);
  const R half(0.5);
  if (places == "asymmetric") return at / scale;
  if (places == "tf_half_pixel_for_nn") return (at + half) / scale;
  if (places == "align_corners") return axis.length == 1 ? 0 : at * (size - 1) / static_cast<R>(axis.length - 1);
  if (places == "tf_crop_and_resize") {
    const auto begin = static_cast<R>(axis.begin), end = static_cast<R>(axis.end);
    if (axis.goal == 1) return half * (begin + end) * (size - 1);
    return begin * (size - 1) + at * (end - begin) * (size - 1) / static_cast<R>(axis.goal - 1);
  }
  if (places == "pytorch_half_pixel" && axis.length == 1) return 0;
  const R shift = places == "half_pixel_symmetric" ? size / 2 * (1 - static_cast<R>(axis.goal) / (scale * size)) : 0;
  return shift + (at + half) / scale - half;
}

template <typename R>
R& share_of(Shares<R>& shares, int64_t result, int64_t entry) {
  const int64_t inside = std::clamp<int64_t>(entry, 0, shares.entries - 1);
  return shares.values[static_cast<size_t>(result * shares.entries + inside)];
}

}  // namespace

std::string resampling_fault(const Resampling& how) {
  const auto fault = [](std::string_view what, std::string_view name, std::initializer_list<std::string_view> names) {
    if (std::ranges::find(names, name) != names.end()) return std::string();
    std::string known;
    for (const std::string_view each : names) known += text(known.empty() ? "" : ", ", each);
    return text(what, " must be one of ", known, "; got ", name, ".");
  };
  return fault("mode", how.mode, {"nearest", "linear", "cubic"}) +
         fault("places", how.places,
               {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                "tf_half_pixel_for_nn", "tf_crop_and_resize"}) +
         fault("rounding", how.rounding,
               {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "ceil_to_shrink"}) +
         fault("policy", how.policy, {"stretch", "not_larger", "not_smaller"});
}

ResampledEntry resampled_entry(const Resampling& how, const ResampledAxis& axis, int64_t at) {
  // A region has its edges in f32.
  const bool single = how.places == "tf_crop_and_resize" || (axis.by_scale && how.mode == "nearest");
  const double x = single ? place<float>(how.places, axis, at) : place<double>(how.places, axis, at);
  if (how.places == "tf_crop_and_resize" && !(x >= 0 && x <= static_cast<double>(axis.size - 1))) return {0, {}};
  // The entry before x, and how far x is behind it: in (0, 1].
  const double base = std::ceil(x) - 1, ratio = x - base;
  const auto before = static_cast<int64_t>(std::clamp(base, -1e15, 1e15));
  if (how.mode == "nearest") {
    const bool next = ratio == 1 || (how.rounding == "round_prefer_floor"  ? ratio > 0.5
                                     : how.rounding == "round_prefer_ceil" ? ratio >= 0.5
                                     : how.rounding == "ceil_to_shrink"    ? axis.scale < 1
                                                                           : how.rounding == "ceil");
    return {before + (next ? 1 : 0), {1.0}};
  }
  const bool cubic = how.mode == "cubic";
  const double shrink = how.antialias ? std::min(axis.scale, 1.0) : 1.0, reach = cubic ? 2 : 1;
  const auto start = static_cast<int64_t>(std::floor(-reach / shrink)) + 1;
  ResampledEntry out{before + start, {}};
  double sum = 0;
  for (int64_t k = start; k <= 1 - start; ++k) {
    const bool outside = how.exclude_outside && (before + k < 0 || before + k >= axis.size);
    const double apart = shrink * (static_cast<double>(k) - ratio);
    out.weights.push_back(outside ? 0 : resampling_weight(cubic, apart, how.cubic_coefficient));
    sum += out.weights.back();
  }
  if ((how.antialias || how.exclude_outside) && sum != 0) {
    for (double& weight : out.weights) weight /= sum;
  }
  return out;
}

Shares<double> resampling_shares(const Resampling& how, const ResampledAxis& axis) {
  Shares<double> out{axis.size, std::vector<double>(static_cast<size_t>(axis.goal * axis.size))};
  for (int64_t at = 0; axis.size > 0 && at < axis.goal; ++at) {
    const ResampledEntry entry = resampled_entry(how, axis, at);
    for (size_t k = 0; k < entry.weights.size(); ++k)
      share_of(out, at, entry.first + static_cast<int64_t>(k)) += entry.weights[k];
  }
  return out;
}

std::vector<int64_t> nearest_before(int64_t in, int64_t out, double scale) {
  if (out == in || out == 2 * in) scale = 0;
  const float step = TorchPlaces<float>(in, out, scale, false).step();
  std::vector<int64_t> places;
  for (int64_t k = 0; k < out; ++k)
    places.push_back(std::min(static_cast<int64_t>(std::floor(static_cast<float>(k) * step)), in - 1));
  return places;
}

std::vector<LinearTap> linear_taps(int64_t in, int64_t out, double scale, bool align_corners) {
  const TorchPlaces<float> places(in, out, out == in ? 0 : scale, align_corners);
  std::vector<LinearTap> taps;
  for (int64_t k = 0; k < out; ++k) {
    const float at = std::max(0.0F, places(k));
    const int64_t low = std::min(static_cast<int64_t>(at), in - 1);
    taps.push_back({low, std::min(low + 1, in - 1), std::clamp(at - static_cast<float>(low), 0.0F, 1.0F)});
  }
  return taps;
}

template <typename R>
Shares<R> cubic_shares(int64_t in, int64_t out, double scale, bool align_corners) {
  const TorchPlaces<R> places(in, out, scale, align_corners);
  Shares<R> shares{in, std::vector<R>(static_cast<size_t>(in * out))};
  for (int64_t k = 0; in > 0 && k < out; ++k) {
    const R at = places(k), first = std::floor(at);
    for (int64_t tap = -1; tap <= 2; ++tap)
      share_of(shares, k, static_cast<int64_t>(first) + tap) +=
          resampling_weight(true, (at - first) - static_cast<R>(tap), R(-0.75));
  }
  return shares;
}
template Shares<float> cubic_shares(int64_t, int64_t, double, bool);
template Shares<double> cubic_shares(int64_t, int64_t, double, bool);

Shares<float> antialiased_shares(int64_t in, int64_t out, double scale, bool align_corners, bool cubic) {
  const float step = TorchPlaces<float>(in, out, scale, align_corners).step(), width = std::max(step, 1.0F);
  const float support = (cubic ? 2.0F : 1.0F) * width, inverse = 1.0F / width;
  Shares<float> shares{in, std::vector<float>(static_cast<size_t>(in * out))};
  for (int64_t k = 0; in > 0 && k < out; ++k) {
    const float centre = step * (static_cast<float>(k) + 0.5F);
    const auto first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5F), 0),
               end = std::min(static_cast<int64_t>(centre + support + 0.5F), in);
    float total = 0;
    for (int64_t at = first; at < end; ++at) {
      const float apart = static_cast<float>(at - first) + (static_cast<float>(first) - centre);
      total += share_of(shares, k, at) = resampling_weight(cubic, (apart + 0.5F) * inverse, -0.5F);
    }
    for (int64_t at = first; total != 0 && at < end; ++at) share_of(shares, k, at) /= total;
  }
  return shares;
}

}  // namespace hetnn::ops
