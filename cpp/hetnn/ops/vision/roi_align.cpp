// roi_align: regions of feature maps, each resampled to a grid of one size.
#include <algorithm>
#include <cmath>

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

// x [N,C,H,W], regions [R,4], batches [R] -> y [R,C,h,w].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &regions = call.input(1), &batches = call.input(2);
  if (x.rank() != 4 || !is_float(x.dtype) || regions.rank() != 2 || regions.dtype != x.dtype ||
      regions.shape[1] != Dim(4)) {
    fail(call, "roi_align_c1",
         text("x must be [N,C,H,W] and the regions [R,4] of the same real type; got ", to_string(x), " and ",
              to_string(regions), "."));
  }
  if (batches.dtype != DType::i64 || batches.shape != Shape{regions.shape[0]}) {
    fail(call, "roi_align_c2",
         text("batches must be i64[", regions.shape[0], "], one for each region; got ", to_string(batches), "."));
  }
  const std::string& mode = call.string("mode");
  if (mode != "avg" && mode != "max") fail(call, "roi_align_c3", text("mode must be avg or max; got ", mode, "."));
  const std::vector<int64_t> size = per_axis(call, "output_size", 2);
  if (size[0] < 1 || size[1] < 1) fail(call, "roi_align_c4", "output_size must be positive.");
  constexpr int64_t kMostPoints = 1024;
  if (const int64_t ratio = fixed_integer(call, "sampling_ratio"); ratio < 0 || ratio > kMostPoints)
    fail(call, "roi_align_c5", text("sampling_ratio must be in [0, ", kMostPoints, "]; got ", ratio, "."));
  return {{x.dtype, {regions.shape[0], x.shape[1], size[0], size[1]}}};
}

// The four pixels around a point and their weights; none outside of the map.
struct Corners {
  int64_t place[4];
  double weight[4];
};

Corners corners(double y, double x, int64_t height, int64_t width) {
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return {};
  const auto low = [](double& at, int64_t size) {
    at = std::clamp(at, 0.0, static_cast<double>(size - 1));
    return static_cast<int64_t>(at);
  };
  const int64_t top = low(y, height), left = low(x, width);
  const int64_t bottom = std::min(top + 1, height - 1), right = std::min(left + 1, width - 1);
  const double down = y - static_cast<double>(top), over = x - static_cast<double>(left);
  return {{top * width + left, top * width + right, bottom * width + left, bottom * width + right},
          {(1 - down) * (1 - over), (1 - down) * over, down * (1 - over), down * over}};
}

template <typename T>
void compute(const Evaluation& e, T* y) {
  const T *x = e.input(0).values<T>().data(), *regions = e.input(1).values<T>().data();
  const auto batches = e.input(2).values<int64_t>();
  const auto in = e.input(0).shape;
  const std::vector<int64_t> size = per_axis(e.call, "output_size", 2);
  const double scale = e.call.real("spatial_scale"), offset = e.call.flag("aligned") ? 0.5 : 0.0;
  const int64_t sampling = e.call.integer("sampling_ratio").value();
  const bool average = e.call.string("mode") == "avg";
  for (size_t r = 0; r < batches.size(); ++r) {
    if (batches[r] < 0 || batches[r] >= in[0]) {
      fail(e.call, "roi_align_c5", text("a region lies in image ", batches[r], " of ", in[0], "."));
    }
    double first[2], step[2];  // of rows and columns
    int64_t points[2];
    for (int64_t axis = 0; axis < 2; ++axis) {
      const auto edge = [&](int64_t k) {
        return static_cast<double>(regions[static_cast<int64_t>(r) * 4 + k + 1 - axis]) * scale - offset;
      };
      const double extent = offset > 0 ? edge(2) - edge(0) : std::max(edge(2) - edge(0), 1.0);
      first[axis] = edge(0);
      step[axis] = extent / static_cast<double>(size[static_cast<size_t>(axis)]);
      if (!(std::abs(step[axis]) < 1e6)) fail(e.call, "roi_align_c6", "a region is too large or no number.");
      points[axis] = sampling > 0 ? sampling : static_cast<int64_t>(std::ceil(step[axis]));
    }
    for (int64_t c = 0; c < in[1]; ++c) {
      const auto* plane = x + (batches[r] * in[1] + c) * in[2] * in[3];
      for (int64_t i = 0; i < size[0]; ++i) {
        for (int64_t j = 0; j < size[1]; ++j) {
          double found = 0;
          bool fresh = true;
          for (int64_t row = 0; row < points[0]; ++row) {
            for (int64_t column = 0; column < points[1]; ++column) {
              const auto at = [&](int64_t axis, int64_t bin, int64_t point) {
                return first[axis] + step[axis] * (static_cast<double>(bin) + (static_cast<double>(point) + 0.5) /
                                                                                  static_cast<double>(points[axis]));
              };
              const Corners near = corners(at(0, i, row), at(1, j, column), in[2], in[3]);
              for (int k = 0; k < 4; ++k) {
                const double part = near.weight[k] * static_cast<double>(plane[near.place[k]]);
                found = average ? found + part : fresh ? part : std::max(found, part);
                fresh = false;
              }
            }
          }
          if (average) found /= static_cast<double>(std::max<int64_t>(points[0] * points[1], 1));
          *y++ = static_cast<T>(found);
        }
      }
    }
  }
}

void meaning(const Evaluation& e) {
  const Result y = e.output();
  visit_wide_reals(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    compute<T>(e, y.values<T>());
  });
}

}  // namespace

OpDef define_roi_align() {
  return {.name = "roi_align",
          .doc =
              "Regions (x1, y1, x2, y2) of feature maps, each as a grid of one size: the average of points in every "
              "bin, or the greatest weighted pixel around them.",
          .inputs = {{"x", "[N,C,H,W]"}, {"regions", "[R,4]"}, {"batches", "i64[R]: the image of each region"}},
          .attrs = {{"output_size", AttrKind::integers, std::nullopt, "height, width"},
                    {"spatial_scale", AttrKind::real, 1.0, "from the regions' coordinates to those of x"},
                    {"sampling_ratio", AttrKind::integer, Dim(0), "points a bin along each axis; 0: as many as pixels"},
                    {"aligned", AttrKind::boolean, true, "whether coordinates are of pixels' corners, not centres"},
                    {"mode", AttrKind::string, std::string("avg"), "avg or max"}},
          .traits = static_cast<uint32_t>(Trait::wide),
          .onnx = {"RoiAlign"},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 1e-5,
          .samples = {"roi_align(f32[1,2,6,7], f32[2,4], i64[2] {0, 0}) {output_size = [2,3]}",
                      "roi_align(f32[2,1,6,7], f32[1,4], i64[1] {1}) {output_size = [2,2], sampling_ratio = 2, mode = "
                      "max, aligned = false}"}};
}

}  // namespace hetnn::ops
