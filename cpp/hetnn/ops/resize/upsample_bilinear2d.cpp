// upsample_bilinear2d: an image in another size, every pixel a mean of its four neighbours.
#include "hetnn/ops/resize/upsample.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const auto taps = [&](size_t axis) {
    return linear_taps(x.shape[2 + axis], y.shape[2 + axis], scale_of(e.call, axis), e.call.flag("align_corners"));
  };
  const std::vector<LinearTap> rows = taps(0), columns = taps(1);
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    T* to = y.values<T>();
    for (int64_t plane = 0; plane < y.shape[0] * y.shape[1]; ++plane) {
      const auto pixel = [&](int64_t row, int64_t column) {
        return static_cast<double>(from[(plane * x.shape[2] + row) * x.shape[3] + column]);
      };
      for (const LinearTap& v : rows) {
        for (const LinearTap& h : columns) {
          const double top = (1.0 - h.weight) * pixel(v.low, h.low) + h.weight * pixel(v.low, h.high);
          const double bottom = (1.0 - h.weight) * pixel(v.high, h.low) + h.weight * pixel(v.high, h.high);
          *to++ = static_cast<T>((1.0 - v.weight) * top + v.weight * bottom);
        }
      }
    }
  });
}

}  // namespace

OpDef define_upsample_bilinear2d() {
  return upsample({.name = "upsample_bilinear2d",
                   .doc = "An image in another size: every pixel a mean of its four neighbours, by distance.",
                   .attrs = {{"align_corners", AttrKind::boolean, false,
                              "whether the corners of both images lie on each other, or their edges"}},
                   .traits = Trait::compute | Trait::wide,
                   .infer =
                       [](const Call& call) {
                         if (!is_real(call.input(0)))
                           fail(call, "upsample_bilinear2d_c3",
                                text("x must be real; got ", to_string(call.input(0)), ". Cast it."));
                         return infer_upsample(call);
                       },
                   .meaning = meaning,
                   .work = [](const Call& call) { return Work{.macs = elements(call.output().shape) * 4, .flops = 0}; },
                   .tolerance = 1e-5,
                   .samples = {"upsample_bilinear2d(f32[2,3,4,5]) {size = [8,10]}",
                               "upsample_bilinear2d(f32[1,4,7,6]) {size = [3,9], align_corners = true}",
                               "upsample_bilinear2d(f32[1,2,4,4]) {size = [6,10], scales = [1.5,2.5]}"}});
}

}  // namespace hetnn::ops
