// resize_over: resampling along axes, to sizes or by scales that inputs hold.
#include <algorithm>
#include <cmath>

#include "hetnn/base/convert.h"
#include "hetnn/ops/late/late.h"

namespace hetnn::ops {
namespace {

constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};
constexpr std::string_view kPlaces[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                        "align_corners", "asymmetric",           "tf_crop_and_resize"};
constexpr std::string_view kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
constexpr std::string_view kPolicies[] = {"stretch", "not_larger", "not_smaller"};

void check_choice(const Call& call, std::string_view attr, std::span<const std::string_view> names) {
  if (std::find(names.begin(), names.end(), call.string(attr)) != names.end()) return;
  std::string known;
  for (const std::string_view name : names) known += text(known.empty() ? "" : ", ", name);
  fail(call, "resize_over_c1", text(attr, " must be one of ", known, "; got ", call.string(attr), "."));
}

std::vector<Type> infer(const Call& call) {
  check_choice(call, "mode", kModes);
  check_choice(call, "places", kPlaces);
  check_choice(call, "rounding", kRoundings);
  check_choice(call, "policy", kPolicies);
  if (call.has(2) == call.has(3)) fail(call, "resize_over_c2", "either scales or goals must be given.");
  const bool reals = (!call.has(1) || is_float(call.input(1).dtype)) && (!call.has(2) || is_float(call.input(2).dtype));
  if (!reals || (call.has(3) && !is_integer(call.input(3).dtype))) {
    fail(call, "resize_over_c3", "scales and the region must be reals, the goals integers.");
  }
  if (call.input(0).dtype == DType::boolean) fail(call, "resize_over_c4", "bools are not resampled. Cast them.");
  return {{call.input(0).dtype, call.integers("sizes")}};
}

// How one axis is resampled.
struct Axis {
  int64_t size, goal;
  double scale, begin, end;  // the region as parts of the axis
};

// Of every entry of the result: the first entry of the axis that it reads, and
// the weights from there on; without weights it lies outside of the region.
struct Taps {
  int64_t first;
  std::vector<double> weights;
};

// Where an entry of the result lies on the axis.
double place(const std::string& places, const Axis& axis, double at) {
  const auto size = static_cast<double>(axis.size);
  const double width = axis.scale * size;
  if (places == "asymmetric") return at / axis.scale;
  if (places == "align_corners") return width == 1 ? 0 : at * (size - 1) / (width - 1);
  if (places == "tf_crop_and_resize") {
    const double extent = (axis.end - axis.begin) * (size - 1);
    return axis.begin * (size - 1) + (width == 1 ? extent / 2 : at * extent / (width - 1));
  }
  if (places == "pytorch_half_pixel" && width == 1) return 0;
  const double shift = places == "half_pixel_symmetric" ? size / 2 * (1 - static_cast<double>(axis.goal) / width) : 0;
  return shift + (at + 0.5) / axis.scale - 0.5;
}

double kernel(const std::string& mode, double apart, double a) {
  apart = std::abs(apart);
  if (mode == "linear") return std::max(1 - apart, 0.0);
  if (apart <= 1) return ((a + 2) * apart - (a + 3)) * apart * apart + 1;
  return apart < 2 ? ((a * apart - 5 * a) * apart + 8 * a) * apart - 4 * a : 0;
}

Taps taps_at(const Call& call, const Axis& axis, int64_t at) {
  const std::string &mode = call.string("mode"), &places = call.string("places"), &rounding = call.string("rounding");
  const double x = place(places, axis, static_cast<double>(at));
  if (places == "tf_crop_and_resize" && !(x >= 0 && x <= static_cast<double>(axis.size - 1))) return {0, {}};
  // The entry before x, and how far x is behind it: in (0, 1].
  const double base = std::ceil(x) - 1, ratio = x - base;
  const auto before = static_cast<int64_t>(std::clamp(base, -1e15, 1e15));
  if (mode == "nearest") {
    const bool next = ratio == 1 || (rounding == "round_prefer_floor"  ? ratio > 0.5
                                     : rounding == "round_prefer_ceil" ? ratio >= 0.5
                                                                       : rounding == "ceil");
    return {before + (next ? 1 : 0), {1.0}};
  }
  const bool filters = call.flag("antialias");
  const double shrink = filters ? std::min(axis.scale, 1.0) : 1.0, reach = mode == "linear" ? 1 : 2;
  const auto start = static_cast<int64_t>(std::floor(-reach / shrink)) + 1;
  Taps out{before + start, {}};
  double sum = 0;
  for (int64_t k = start; k <= 1 - start; ++k) {
    const bool outside = call.flag("exclude_outside") && (before + k < 0 || before + k >= axis.size);
    out.weights.push_back(
        outside ? 0 : kernel(mode, shrink * (static_cast<double>(k) - ratio), call.real("cubic_coefficient")));
    sum += out.weights.back();
  }
  if ((filters || call.flag("exclude_outside")) && sum != 0) {
    for (double& weight : out.weights) weight /= sum;
  }
  return out;
}

// The axes that are named, in their order, with their goals and scales.
std::vector<Axis> axes_to_resample(const Evaluation& e, std::vector<size_t>& named) {
  const View& x = e.input(0);
  for (const Dim& axis : e.call.integers("axes")) named.push_back(static_cast<size_t>(axis_of(e.call, axis, x.rank())));
  if (named.empty()) {
    for (size_t k = 0; k < x.shape.size(); ++k) named.push_back(k);
  }
  std::vector<double> scales = e.has(2) ? values_as<double>(e.input(2)) : std::vector<double>();
  std::vector<int64_t> goals = e.has(3) ? values_as<int64_t>(e.input(3)) : std::vector<int64_t>();
  const std::vector<double> region = e.has(1) ? values_as<double>(e.input(1)) : std::vector<double>();
  if (std::max(scales.size(), goals.size()) != named.size() || (!region.empty() && region.size() != 2 * named.size())) {
    fail(e.call, "resize_over_c5",
         text("there must be a scale or goal, and two edges of a region, for "
              "each of ",
              named.size(), " axes."));
  }
  if (scales.empty()) {
    for (size_t k = 0; k < named.size(); ++k) {
      scales.push_back(static_cast<double>(goals[k]) / static_cast<double>(x.shape[named[k]]));
    }
    const std::string& policy = e.call.string("policy");
    if (policy != "stretch" && !scales.empty()) {
      const auto [least, greatest] = std::minmax_element(scales.begin(), scales.end());
      scales.assign(scales.size(), policy == "not_larger" ? *least : *greatest);
      for (size_t k = 0; k < named.size(); ++k) {
        goals[k] = convert<int64_t>(scales[k] * static_cast<double>(x.shape[named[k]]) + 0.5);
      }
    }
  } else {
    for (size_t k = 0; k < named.size(); ++k) {
      goals.push_back(convert<int64_t>(scales[k] * static_cast<double>(x.shape[named[k]])));
    }
  }
  std::vector<Axis> out;
  for (size_t k = 0; k < named.size(); ++k) {
    if (goals[k] < 0 || goals[k] > INT32_MAX || !(scales[k] > 1e-6 || goals[k] == 0) ||
        (x.shape[named[k]] == 0 && goals[k] > 0)) {
      fail(e.call, "resize_over_c6",
           text("axis ", named[k], " of size ", x.shape[named[k]], " cannot be resampled to ", goals[k], "."));
    }
    const bool cut = !region.empty();
    out.push_back({x.shape[named[k]], goals[k], scales[k], cut ? region[k] : 0, cut ? region[k + named.size()] : 1});
  }
  return out;
}

// `values` of a shape, resampled along an axis; the shape follows.
std::vector<double> resampled(const Call& call, const std::vector<double>& values, std::vector<int64_t>& shape,
                              size_t at, const Axis& axis) {
  int64_t outer = 1, inner = 1;
  for (size_t k = 0; k < at; ++k) outer *= shape[k];
  for (size_t k = at + 1; k < shape.size(); ++k) inner *= shape[k];
  shape[at] = axis.goal;
  std::vector<double> out(static_cast<size_t>(outer * axis.goal * inner));
  for (int64_t entry = 0; entry < axis.goal; ++entry) {
    const Taps taps = taps_at(call, axis, entry);
    for (int64_t o = 0; o < outer; ++o) {
      double* to = out.data() + (o * axis.goal + entry) * inner;
      if (taps.weights.empty()) std::fill_n(to, inner, call.real("outside"));
      for (size_t k = 0; k < taps.weights.size(); ++k) {
        const int64_t from = std::clamp<int64_t>(taps.first + static_cast<int64_t>(k), 0, axis.size - 1);
        const double* row = values.data() + (o * axis.size + from) * inner;
        const double weight = taps.weights[k];
        for (int64_t i = 0; weight != 0 && i < inner; ++i) to[i] += weight * row[i];
      }
    }
  }
  return out;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  std::vector<size_t> named;
  const std::vector<Axis> axes = axes_to_resample(e, named);
  std::vector<int64_t> shape(x.shape.begin(), x.shape.end());
  std::vector<double> values = values_as<double>(x);
  for (size_t k = 0; k < axes.size(); ++k) {
    const bool same = axes[k].goal == axes[k].size && axes[k].scale == 1 && axes[k].begin == 0 && axes[k].end == 1;
    if (!same) values = resampled(e.call, values, shape, named[k], axes[k]);
  }
  const Result y = late_output(e, std::move(shape));
  if (!is_float(x.dtype)) {  // rounded, and kept in the type's range
    visit_dtype(x.dtype, [&](auto zero) {
      using Limits = std::numeric_limits<decltype(zero)>;
      const auto least = static_cast<double>(Limits::lowest()), most = static_cast<double>(Limits::max());
      for (double& value : values) value = std::clamp(std::nearbyint(value), least, most);
    });
  }
  write_as<double>(y, values);
}

}  // namespace

OpDef define_resize_over() {
  return {.name = "resize_over",
          .doc =
              "x resampled along axes, one after another, to sizes or by scales "
              "that are known at run time; behind the "
              "border the last entry repeats. Integers are rounded.",
          .inputs = {{"x", "any shape"},
                     {"region",
                      "reals: where each axis begins, then where each ends, as "
                      "parts of it",
                      true},
                     {"scales", "reals, one for each axis", true},
                     {"goals", "integers, one for each axis", true}},
          .attrs = {{"axes", AttrKind::integers, std::vector<Dim>{}, "the axes; none: all"},
                    {"mode", AttrKind::string, std::string("nearest"), "nearest, linear or cubic"},
                    {"places", AttrKind::string, std::string("half_pixel"),
                     "where entries of y lie in x: half_pixel, half_pixel_symmetric, "
                     "pytorch_half_pixel, align_corners, "
                     "asymmetric or tf_crop_and_resize"},
                    {"rounding", AttrKind::string, std::string("round_prefer_floor"),
                     "of nearest: round_prefer_floor, round_prefer_ceil, floor or ceil"},
                    {"antialias", AttrKind::boolean, false, "whether smaller results read wider windows"},
                    {"cubic_coefficient", AttrKind::real, -0.75, "of the cubic weights"},
                    {"exclude_outside", AttrKind::boolean, false, "whether what lies outside has no weight"},
                    {"outside", AttrKind::real, 0.0, "of tf_crop_and_resize: the value outside of x"},
                    {"policy", AttrKind::string, std::string("stretch"),
                     "of goals: stretch, or one scale for all axes, not_larger or "
                     "not_smaller"},
                    sizes_attr()},
          .onnx = {"Resize"},
          .infer = infer,
          .meaning = meaning,
          .samples = {"resize_over(f32[1,2,4,5], _, f32[4] {1, 1, 2, 0.6}, _) {mode = linear, sizes = [1,2,8,3]}",
                      "resize_over(f32[1,1,6,5], _, _, i64[2] {4, 9}) {axes = [2,3], mode = cubic, antialias = true, "
                      "sizes = [1,1,4,9]}"}};
}

}  // namespace hetnn::ops
