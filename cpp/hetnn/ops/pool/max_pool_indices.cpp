// max_pool_indices: where in its plane the largest value of every window stands.
#include <limits>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

struct Windows {
  std::vector<int64_t> kernel, stride, pad, dilation;
};

Windows windows_of(const Call& call) {
  const auto axes = static_cast<size_t>(call.input(0).rank() - 2);
  return {per_axis(call, "kernel", axes), per_axis(call, "stride", axes), per_axis(call, "padding", axes),
          per_axis(call, "dilation", axes)};
}

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.rank() < 3)
    fail(call, "max_pool_indices_c1", text("x must be [N,C,...]; got ", to_string(x), ". Check its rank."));
  const Windows w = windows_of(call);
  Shape y = {x.shape[0], x.shape[1]};
  for (size_t k = 0; k + 2 < x.shape.size(); ++k) {
    if (w.kernel[k] < 1 || w.stride[k] < 1 || w.dilation[k] < 1 || w.pad[k] < 0 || w.pad[k] * 2 > w.kernel[k])
      fail(call, "max_pool_indices_c2",
           text("kernel, stride and dilation must be positive and padding at most half the kernel; got kernel ",
                to_string(call.integers("kernel")), " and padding ", to_string(call.integers("padding")), "."));
    y.push_back(window_size(x.shape[k + 2], w.kernel[k], w.stride[k], w.dilation[k], w.pad[k], w.pad[k],
                            call.flag("ceil_mode")));
    if (y.back().is_static() && y.back().value() < 1)
      fail(call, "max_pool_indices_c3",
           text("the window must fit in the padded input; got ", to_string(x), ". Give a larger input."));
  }
  return {{DType::i64, y}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const Windows w = windows_of(e.call);
  const std::vector<int64_t> size(x.shape.begin() + 2, x.shape.end()), out(y.shape.begin() + 2, y.shape.end());
  const Strides step = strides_of(size);
  int64_t plane = 1;
  for (const int64_t n : size) plane *= n;
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* in = x.values<T>().data();
    auto* to = y.values<int64_t>();
    std::vector<int64_t> at(size.size()), tap(size.size());
    for (int64_t k = 0, planes = x.shape[0] * x.shape[1]; k < y.elems(); ++k) {
      int64_t rest = k;
      for (size_t axis = out.size(); axis-- > 0; rest /= out[axis])
        at[axis] = rest % out[axis] * w.stride[axis] - w.pad[axis];
      const int64_t first = rest % planes * plane;
      std::vector<int64_t> taps(size.size()), walk(size.size());
      int64_t start = 0;
      for (size_t axis = 0; axis < size.size(); ++axis) {
        const Interval of = inside(at[axis], w.dilation[axis], w.kernel[axis], size[axis]);
        taps[axis] = of.end - of.begin;
        start += (at[axis] + of.begin * w.dilation[axis]) * step[axis];
        walk[axis] = w.dilation[axis] * step[axis];
      }
      int64_t best = start;
      nest<1>(taps, {walk}, [&](int64_t offset) {
        const T value = in[first + start + offset], kept = in[first + best];
        if (value > kept || value != value) best = start + offset;
      });
      to[k] = best;
    }
  });
}

}  // namespace

OpDef define_max_pool_indices() {
  return {.name = "max_pool_indices",
          .doc = "Where in its plane the largest value of every window stands, the first of equals; NaN wins.",
          .inputs = {{"x", "[N,C,...]"}},
          .attrs = {{"kernel", AttrKind::integers, std::nullopt, "one for each axis"},
                    {"stride", AttrKind::integers, std::vector<Dim>{1}, "one for each axis"},
                    {"padding", AttrKind::integers, std::vector<Dim>{0}, "on both sides of each axis"},
                    {"dilation", AttrKind::integers, std::vector<Dim>{1}, "one for each axis"},
                    {"ceil_mode", AttrKind::boolean, false, "whether a last, partial window counts"}},
          .traits = static_cast<uint32_t>(Trait::wide),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"max_pool_indices(f32[1,3,8,9]) {kernel = [2,2], stride = [2,2]}",
                      "max_pool_indices(f32[2,5,7]) {kernel = [3], padding = [1], ceil_mode = true}",
                      "max_pool_indices(f32[1,2,4,4,4]) {kernel = [2,2,3], dilation = [1,2,1]}"}};
}

}  // namespace hetnn::ops
