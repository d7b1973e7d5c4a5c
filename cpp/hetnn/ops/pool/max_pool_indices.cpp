// max_pool_indices: where in its plane the largest value of every window stands.
#include <limits>

#include "hetnn/ops/batch.h"
#include "hetnn/ops/pool/pooling.h"

namespace hetnn::ops {
namespace {

Window windows_of(const Call& call) { return window_of(call, static_cast<size_t>(call.input(0).rank() - 2)); }

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.rank() < 3)
    fail(call, "max_pool_indices_c1", text("x must be [N,C,...]; got ", to_string(x), ". Check its rank."));
  const Window window = windows_of(call);
  check_pool_window(call, window, "max_pool_indices_c2");
  return {{DType::i64, windows_over(call, window, x.shape[1], call.flag("ceil_mode"), "max_pool_indices_c3")}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const Window w = windows_of(e.call);
  const std::vector<int64_t> size(x.shape.begin() + 2, x.shape.end()), out(y.shape.begin() + 2, y.shape.end());
  const Strides step = strides_of(size);
  int64_t plane = 1;
  for (const int64_t n : size) plane *= n;
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* in = x.values<T>().data();
    auto* to = y.values<int64_t>();
    std::vector<int64_t> at(size.size());
    for (int64_t k = 0, planes = x.shape[0] * x.shape[1]; k < y.elems(); ++k) {
      int64_t rest = k;
      for (size_t axis = out.size(); axis-- > 0; rest /= out[axis]) at[axis] = rest % out[axis];
      const int64_t first = rest % planes * plane;
      std::vector<int64_t> taps(size.size()), walk(size.size());
      int64_t start = 0;
      for (size_t axis = 0; axis < size.size(); ++axis) {
        const Interval of = w[axis].taps(at[axis], size[axis]);
        taps[axis] = of.end - of.begin;
        start += (w[axis].begin(at[axis]) + of.begin * w[axis].dilation) * step[axis];
        walk[axis] = w[axis].dilation * step[axis];
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
          .keeps_batch = keeps_batch_of_first,
          .tolerance = 0,
          .samples = {"max_pool_indices(f32[1,3,8,9]) {kernel = [2,2], stride = [2,2]}",
                      "max_pool_indices(f32[2,5,7]) {kernel = [3], padding = [1], ceil_mode = true}",
                      "max_pool_indices(f32[1,2,4,4,4]) {kernel = [2,2,3], dilation = [1,2,1]}"}};
}

}  // namespace hetnn::ops
