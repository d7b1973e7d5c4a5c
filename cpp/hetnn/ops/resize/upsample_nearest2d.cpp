// upsample_nearest2d: an image in another size, every pixel the nearest before it.
#include <algorithm>
#include <cmath>

#include "hetnn/ops/resize/upsample.h"

namespace hetnn::ops {
namespace {

// Single precision decides ties, as in torch.
std::vector<int64_t> sources(const Call& call, size_t axis, int64_t in, int64_t out) {
  std::vector<int64_t> places;
  const auto step = static_cast<float>(step_of(call, axis, in, out));
  for (int64_t k = 0; k < out; ++k)
    places.push_back(std::min(static_cast<int64_t>(std::floor(static_cast<float>(k) * step)), in - 1));
  return places;
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const std::vector<int64_t> rows = sources(e.call, 0, x.shape[2], y.shape[2]),
                             columns = sources(e.call, 1, x.shape[3], y.shape[3]);
  visit_width(x.dtype, [&](auto zero) {
    using U = decltype(zero);
    const U* from = reinterpret_cast<const U*>(x.data);
    auto* to = reinterpret_cast<U*>(y.data);
    for (int64_t plane = 0; plane < y.shape[0] * y.shape[1]; ++plane) {
      for (const int64_t row : rows)
        for (const int64_t column : columns) *to++ = from[(plane * x.shape[2] + row) * x.shape[3] + column];
    }
  });
}

}  // namespace

OpDef define_upsample_nearest2d() {
  return upsample({.name = "upsample_nearest2d",
                   .doc = "An image in another size: y[i,j] = x[floor(i / scale_h), floor(j / scale_w)].",
                   .traits = static_cast<uint32_t>(Trait::movement),
                   .meaning = meaning,
                   .tolerance = 0,
                   .samples = {"upsample_nearest2d(f32[2,3,4,5]) {size = [8,10]}",
                               "upsample_nearest2d(f32[1,4,7,6]) {size = [3,9], scales = [0.5,1.5]}"}});
}

}  // namespace hetnn::ops
