// max_roi_pool: the greatest pixels of regions of feature maps, each region cut to a grid of one size.
#include <algorithm>
#include <cmath>

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

// x [N,C,H,W], regions [R,5] -> y [R,C,h,w].
std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &regions = call.input(1);
  if (x.rank() != 4 || !is_float(x.dtype) || regions.rank() != 2 || regions.dtype != x.dtype ||
      regions.shape[1] != Dim(5)) {
    fail(call, "max_roi_pool_c1",
         text("x must be [N,C,H,W] and the regions [R,5] of the same real type; got ", to_string(x), " and ",
              to_string(regions), "."));
  }
  const std::vector<int64_t> size = per_axis(call, "output_size", 2);
  if (size[0] < 1 || size[1] < 1) fail(call, "max_roi_pool_c2", "output_size must be positive.");
  return {{x.dtype, {regions.shape[0], x.shape[1], size[0], size[1]}}};
}

// The pixels of an axis that lie in one of `bins` parts of a region: [first, second), cut to the map.
std::pair<int64_t, int64_t> part_of(double begin, double end, int64_t bins, int64_t bin, int64_t size) {
  const double width = std::max(end - begin + 1, 1.0) / static_cast<double>(bins);
  const auto cut = [&](double at) { return std::clamp<int64_t>(static_cast<int64_t>(at + begin), 0, size); };
  return {cut(std::floor(width * static_cast<double>(bin))), cut(std::ceil(width * static_cast<double>(bin + 1)))};
}

template <typename T>
void compute(const Evaluation& e, T* y) {
  const T *x = e.input(0).values<T>().data(), *region = e.input(1).values<T>().data();
  const auto in = e.input(0).shape;
  const std::vector<int64_t> size = per_axis(e.call, "output_size", 2);
  const double scale = e.call.real("spatial_scale");
  for (int64_t r = 0; r < e.input(1).shape[0]; ++r, region += 5) {
    double edges[5];
    for (int k = 0; k < 5; ++k) {
      edges[k] = std::round(static_cast<double>(region[k]) * (k == 0 ? 1 : scale));
      if (!(std::abs(edges[k]) < 1e9)) fail(e.call, "max_roi_pool_c3", "a region is too large or no number.");
    }
    const auto image = static_cast<int64_t>(edges[0]);
    if (image < 0 || image >= in[0])
      fail(e.call, "max_roi_pool_c4", text("a region lies in image ", image, " of ", in[0], "."));
    for (int64_t c = 0; c < in[1]; ++c) {
      const T* plane = x + (image * in[1] + c) * in[2] * in[3];
      for (int64_t i = 0; i < size[0]; ++i) {
        const auto [top, bottom] = part_of(edges[2], edges[4], size[0], i, in[2]);
        for (int64_t j = 0; j < size[1]; ++j) {
          const auto [left, right] = part_of(edges[1], edges[3], size[1], j, in[3]);
          T most = top < bottom && left < right ? plane[top * in[3] + left] : T(0);
          for (int64_t row = top; row < bottom; ++row)
            for (int64_t column = left; column < right; ++column) most = std::max(most, plane[row * in[3] + column]);
          *y++ = most;
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

OpDef define_max_roi_pool() {
  return {
      .name = "max_roi_pool",
      .doc =
          "Regions (image, x1, y1, x2, y2) of feature maps, edges rounded to pixels and included, each as a grid of "
          "one size: the greatest pixel of every part, 0 of one that has none.",
      .inputs = {{"x", "[N,C,H,W]"}, {"regions", "[R,5]"}},
      .attrs = {{"output_size", AttrKind::integers, std::nullopt, "height, width"},
                {"spatial_scale", AttrKind::real, 1.0, "from the regions' coordinates to those of x"}},
      .traits = static_cast<uint32_t>(Trait::wide),
      .onnx = {{"MaxRoiPool", 1, "x regions output_size:pooled_shape spatial_scale"}},
      .infer = infer,
      .meaning = meaning,
      .tolerance = 0,
      .samples = {"max_roi_pool(f32[1,2,6,7], f32[2,5] {0, 0, 0, 3, 3, 0, 1, 2, 5, 9}) {output_size = [2,3]}",
                  "max_roi_pool(f32[2,1,6,7], f32[1,5] {1, 4, 4, 2, 2}) {output_size = [2,2], spatial_scale = "
                  "0.5}"}};
}

}  // namespace hetnn::ops
