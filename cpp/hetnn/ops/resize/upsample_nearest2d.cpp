// upsample_nearest2d: an image in another size, every pixel the nearest before it.
#include "hetnn/ops/resize/upsample.h"

namespace hetnn::ops {
namespace {

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const auto places = [&](size_t axis) {
    return nearest_before(x.shape[2 + axis], y.shape[2 + axis], scale_of(e.call, axis));
  };
  const std::vector<int64_t> rows = places(0), columns = places(1);
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
                   .primitive = Primitive::rearrange,
                   .meaning = meaning,
                   .tolerance = 0,
                   .samples = {"upsample_nearest2d(f32[2,3,4,5]) {size = [8,10]}",
                               "upsample_nearest2d(f32[1,4,7,6]) {size = [3,9], scales = [0.5,1.5]}"}});
}

}  // namespace hetnn::ops
