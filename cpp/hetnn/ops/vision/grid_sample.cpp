// grid_sample: values of a tensor at places that a grid names.
#include <algorithm>
#include <cmath>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/resample.h"

namespace hetnn::ops {
namespace {

// x [N,C,D...], grid [N,O...,k] with k sizes in each of D and O -> y [N,C,O...].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &grid = call.input(1);
  const bool alike = x.rank() >= 3 && grid.rank() == x.rank() && grid.shape.back() == Dim(x.rank() - 2) &&
                     grid.shape[0] == x.shape[0] && grid.dtype == x.dtype && is_float(x.dtype);
  if (!alike) {
    fail(call, "grid_sample_c1",
         text("x must be [N,C,D...] and the grid [N,O...,axes] of one real type; got ", to_string(x), " and ",
              to_string(grid), "."));
  }
  const std::string &mode = call.string("mode"), &outside = call.string("outside");
  if (mode != "linear" && mode != "nearest" && mode != "cubic")
    fail(call, "grid_sample_c2", text("mode must be linear, nearest or cubic; got ", mode, "."));
  if (outside != "zeros" && outside != "border" && outside != "reflection")
    fail(call, "grid_sample_c3", text("outside must be zeros, border or reflection; got ", outside, "."));
  Shape y = {x.shape[0], x.shape[1]};
  y.insert(y.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  return {{x.dtype, y}};
}

// Mirrored at the edges until it lies between them.
double reflected(double at, double low, double high) {
  const double extent = high - low;
  if (!(extent > 0)) return low;
  const double far = std::fmod(std::abs(at - low), 2 * extent);
  return low + (far > extent ? 2 * extent - far : far);
}

// The entries of an axis around a place, and their weights; -1: outside.
struct Taps {
  int count = 0;
  int64_t at[4];
  double weight[4];
};

class Sampler {
 public:
  explicit Sampler(const Call& call)
      : mode_(call.string("mode")), outside_(call.string("outside")), aligned_(call.flag("align_corners")) {}

  Taps taps(double given, int64_t size) const {
    const auto extent = static_cast<double>(size);
    double x = aligned_ ? (given + 1) / 2 * (extent - 1) : ((given + 1) * extent - 1) / 2;
    if (!std::isfinite(x)) x = -100;  // as far outside as anything
    if (mode_ == "nearest") x = std::nearbyint(x);
    const double low = aligned_ ? 0 : -0.5, high = aligned_ ? extent - 1 : extent - 0.5;
    if (x < low || x > high) {
      // A cubic through points outside bends there: its taps are clamped instead, as torch and onnxruntime do.
      if (outside_ == "border" && mode_ != "cubic") x = std::clamp(x, 0.0, extent - 1);
      if (outside_ == "reflection") x = reflected(x, low, high);
    }
    x = std::clamp(x, -4.0, extent + 4);
    Taps out;
    const double first = mode_ == "nearest" ? std::nearbyint(x) : std::floor(x), apart = x - first;
    const auto add = [&](int64_t step, double weight) {
      out.at[out.count] = entry(static_cast<int64_t>(first) + step, size, low, high);
      out.weight[out.count++] = weight;
    };
    if (mode_ == "nearest") {
      add(0, 1);
    } else if (mode_ == "linear") {
      add(0, 1 - apart);
      add(1, apart);
    } else {
      for (int64_t step = -1; step <= 2; ++step)
        add(step, resampling_weight(true, apart - static_cast<double>(step), -0.75));
    }
    return out;
  }

 private:
  int64_t entry(int64_t at, int64_t size, double low, double high) const {
    if (at >= 0 && at < size) return at;
    if (outside_ == "zeros") return -1;
    if (outside_ == "border") return std::clamp<int64_t>(at, 0, size - 1);
    return std::clamp(static_cast<int64_t>(reflected(static_cast<double>(at), low, high)), int64_t{0}, size - 1);
  }

  const std::string &mode_, &outside_;
  bool aligned_;
};

// The weighted sum over the taps of all axes from `axis` on.
template <typename W>
double weighed(std::span<const Taps> axes, std::span<const int64_t> strides, const W* plane) {
  if (axes.empty()) return static_cast<double>(*plane);
  double sum = 0;
  for (int k = 0; k < axes[0].count; ++k) {
    if (axes[0].at[k] < 0) continue;
    sum += axes[0].weight[k] * weighed(axes.subspan(1), strides.subspan(1), plane + axes[0].at[k] * strides[0]);
  }
  return sum;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const Sampler sampler(e.call);
  const std::vector<int64_t> size(x.shape.begin() + 2, x.shape.end());
  const Strides strides = strides_of(size);
  int64_t plane = 1, points = 1;
  for (const int64_t n : size) plane *= n;
  for (size_t k = 2; k < y.shape.size(); ++k) points *= y.shape[k];
  if (plane == 0 && y.elems() > 0) fail(e.call, "grid_sample_c4", "there is nothing to read: an axis of x is empty.");
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *in = x.values<T>().data(), *grid = e.input(1).values<T>().data();
    std::vector<Taps> taps(size.size());
    for (int64_t n = 0; n < x.shape[0]; ++n) {
      for (int64_t point = 0; point < points; ++point) {
        const auto axes = static_cast<int64_t>(size.size());
        for (int64_t k = 0; k < axes; ++k) {  // the grid names the last axis first
          const auto place = static_cast<double>(grid[(n * points + point) * axes + axes - 1 - k]);
          taps[static_cast<size_t>(k)] = sampler.taps(place, size[static_cast<size_t>(k)]);
        }
        for (int64_t c = 0; c < x.shape[1]; ++c) {
          const double value = weighed(std::span<const Taps>(taps), std::span<const int64_t>(strides),
                                       in + (n * x.shape[1] + c) * plane);
          y.values<T>()[(n * x.shape[1] + c) * points + point] = static_cast<T>(value);
        }
      }
    }
  });
}

}  // namespace

OpDef define_grid_sample() {
  return {.name = "grid_sample",
          .doc =
              "The values of x at places in [-1, 1] along each axis, the last axis first: the nearest, or weighed "
              "between neighbours.",
          .inputs = {{"x", "[N,C,D...]"}, {"grid", "[N,O...,axes]"}},
          .attrs = {{"mode", AttrKind::string, std::string("linear"), "linear, nearest or cubic"},
                    {"outside", AttrKind::string, std::string("zeros"),
                     "what stands outside of x: zeros, the border, or its reflection"},
                    {"align_corners", AttrKind::boolean, false,
                     "whether -1 and 1 are the centres of the outermost entries, not their edges"}},
          .traits = static_cast<uint32_t>(Trait::wide),
          .onnx = {"GridSample"},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-5,
          .samples = {"grid_sample(f32[1,2,4,5], f32[1,3,2,2])",
                      "grid_sample(f32[2,1,4,5], f32[2,3,2,2]) {mode = cubic, outside = reflection}",
                      "grid_sample(f32[1,1,3,4,5], f32[1,2,2,2,3]) {mode = nearest, outside = border, align_corners = "
                      "true}"}};
}

}  // namespace hetnn::ops
