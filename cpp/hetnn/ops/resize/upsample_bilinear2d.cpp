// upsample_bilinear2d: an image in another size, every pixel a mean of its four neighbours.
#include <algorithm>

#include "hetnn/ops/resize/upsample.h"

namespace hetnn::ops {
namespace {

struct Tap {
  int64_t low, high;
  float weight;  // of high
};

std::vector<Tap> taps_of(const Call& call, size_t axis, int64_t in, int64_t out) {
  const bool align = call.flag("align_corners");
  const double aligned = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  const auto step = static_cast<float>(align ? aligned : step_of(call, axis, in, out));
  std::vector<Tap> taps;
  for (int64_t k = 0; k < out; ++k) {
    const auto place = static_cast<float>(k);
    const float at = align ? step * place : std::max(0.0F, step * (place + 0.5F) - 0.5F);
    const int64_t low = std::min(static_cast<int64_t>(at), in - 1);
    taps.push_back({low, std::min(low + 1, in - 1), std::clamp(at - static_cast<float>(low), 0.0F, 1.0F)});
  }
  return taps;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const std::vector<Tap> rows = taps_of(e.call, 0, x.shape[2], y.shape[2]),
                         columns = taps_of(e.call, 1, x.shape[3], y.shape[3]);
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.values<T>().data();
    T* to = y.values<T>();
    for (int64_t plane = 0; plane < y.shape[0] * y.shape[1]; ++plane) {
      const auto pixel = [&](int64_t row, int64_t column) {
        return static_cast<double>(from[(plane * x.shape[2] + row) * x.shape[3] + column]);
      };
      for (const Tap& v : rows) {
        for (const Tap& h : columns) {
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
