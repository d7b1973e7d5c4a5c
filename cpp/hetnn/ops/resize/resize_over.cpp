// resize_over: resampling along axes, to sizes or by scales that inputs hold.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/base/convert.h"
#include "hetnn/ops/late.h"
#include "hetnn/ops/resample.h"

namespace hetnn::ops {
namespace {

Resampling resampling_of(const Call& call) {
  return {call.string("mode"),    call.string("places"),        call.string("rounding"),       call.string("policy"),
          call.flag("antialias"), call.flag("exclude_outside"), call.real("cubic_coefficient")};
}

std::vector<Type> infer(const Call& call) {
  const std::string fault = resampling_fault(resampling_of(call));
  if (!fault.empty()) fail(call, "resize_over_c1", fault);
  if (call.has(2) == call.has(3)) fail(call, "resize_over_c2", "either scales or goals must be given.");
  const bool reals = (!call.has(1) || is_float(call.input(1).dtype)) && (!call.has(2) || is_float(call.input(2).dtype));
  if (!reals || (call.has(3) && !is_integer(call.input(3).dtype))) {
    fail(call, "resize_over_c3", "scales and the region must be reals, the goals integers.");
  }
  if (call.input(0).dtype == DType::boolean) fail(call, "resize_over_c4", "bools are not resampled. Cast them.");
  if (call.input(0).shape.empty() && !call.integers("axes").empty()) {
    fail(call, "resize_over_c7", "the input has rank 0, so there is no axis to resample. Reshape it.");
  }
  return {{call.input(0).dtype, call.integers("sizes")}};
}

// The axes that are named, in their order, with their goals and scales.
std::vector<ResampledAxis> axes_to_resample(const Evaluation& e, std::vector<size_t>& named) {
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
      // In f32, as scales are, so that 0.7 of 10 are 7.
      const float size = static_cast<float>(scales[k]) * static_cast<float>(x.shape[named[k]]);
      goals.push_back(convert<int64_t>(static_cast<double>(size)));
    }
  }
  std::vector<ResampledAxis> out;
  for (size_t k = 0; k < named.size(); ++k) {
    if (goals[k] < 0 || goals[k] > INT32_MAX || !(scales[k] > 1e-6 || goals[k] == 0) ||
        (x.shape[named[k]] == 0 && goals[k] > 0)) {
      fail(e.call, "resize_over_c6",
           text("axis ", named[k], " of size ", x.shape[named[k]], " cannot be resampled to ", goals[k], "."));
    }
    const bool cut = !region.empty();
    const int64_t size = x.shape[named[k]];
    out.push_back({size, goals[k], scales[k], scales[k] * static_cast<double>(size), cut ? region[k] : 0,
                   cut ? region[k + named.size()] : 1, e.has(2)});
  }
  return out;
}

// `values` of a shape, resampled along an axis; the shape follows.
std::vector<double> resampled(const Call& call, const std::vector<double>& values, std::vector<int64_t>& shape,
                              size_t at, const ResampledAxis& axis) {
  int64_t outer = 1, inner = 1;
  for (size_t k = 0; k < at; ++k) outer *= shape[k];
  for (size_t k = at + 1; k < shape.size(); ++k) inner *= shape[k];
  shape[at] = axis.goal;
  std::vector<double> out(static_cast<size_t>(outer * axis.goal * inner));
  const Resampling how = resampling_of(call);
  for (int64_t entry = 0; entry < axis.goal; ++entry) {
    const ResampledEntry taps = resampled_entry(how, axis, entry);
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

// Towards zero; what lies so near an integer is one that arithmetic has missed.
double towards_zero(double value) {
  const double nearest = std::nearbyint(value);
  return std::abs(value - nearest) < 1e-6 ? nearest : std::trunc(value);
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  std::vector<size_t> named;
  const std::vector<ResampledAxis> axes = axes_to_resample(e, named);
  std::vector<int64_t> shape(x.shape.begin(), x.shape.end());
  std::vector<double> values = values_as<double>(x);
  for (size_t k = 0; k < axes.size(); ++k) {
    const bool same = axes[k].goal == axes[k].size && axes[k].scale == 1 && axes[k].begin == 0 && axes[k].end == 1;
    if (!same) values = resampled(e.call, values, shape, named[k], axes[k]);
  }
  const Result y = late_output(e, std::move(shape));
  if (!is_float(x.dtype)) {  // kept in the type's range; as ONNX Runtime, which rounds what it smooths alone
    const bool rounds = e.call.flag("antialias");
    visit_dtype(x.dtype, [&](auto zero) {
      using Limits = std::numeric_limits<decltype(zero)>;
      const auto least = static_cast<double>(Limits::lowest()), most = static_cast<double>(Limits::max());
      for (double& value : values)
        value = std::clamp(rounds ? std::nearbyint(value) : towards_zero(value), least, most);
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
              "border the last entry repeats. Integers are cut towards zero, with antialias rounded.",
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
                     "asymmetric, tf_half_pixel_for_nn or tf_crop_and_resize"},
                    {"rounding", AttrKind::string, std::string("round_prefer_floor"),
                     "of nearest: round_prefer_floor, round_prefer_ceil, floor, ceil, or ceil_to_shrink: ceil where an "
                     "axis shrinks, else floor"},
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
