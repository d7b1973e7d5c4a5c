// adaptive_avg_pool2d: means over a grid of a given size.
#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/mean.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  const std::vector<Dim>& size = call.integers("output_size");
  if (x.shape.size() != 4 || size.size() != 2) {
    fail(call, "adaptive_avg_pool2d_c1",
         text("the input must be [N,C,H,W] and output_size two integers; got ", to_string(x.shape), " and ",
              to_string(size), "."));
  }
  return {{x.dtype, {x.shape[0], x.shape[1], size[0], size[1]}}};
}

// Window i of n over a size s spans [floor(i·s/n), ceil((i+1)·s/n)).
void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const int64_t height = x.shape[2], width = x.shape[3], rows = y.shape[2], columns = y.shape[3];
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* in = x.values<T>().data();
    T* to = y.values<T>();
    for (int64_t plane = 0; plane < x.shape[0] * x.shape[1]; ++plane) {
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t i0 = row * height / rows, i1 = ((row + 1) * height + rows - 1) / rows;
        for (int64_t column = 0; column < columns; ++column) {
          const int64_t j0 = column * width / columns, j1 = ((column + 1) * width + columns - 1) / columns;
          MeanSum<T> sum = 0;
          for (int64_t i = i0; i < i1; ++i)
            for (int64_t j = j0; j < j1; ++j) sum += static_cast<MeanSum<T>>(in[(plane * height + i) * width + j]);
          *to++ = mean_of<T>(e.call, sum, (i1 - i0) * (j1 - j0));
        }
      }
    }
  });
}

}  // namespace

OpDef define_adaptive_avg_pool2d() {
  return {.name = "adaptive_avg_pool2d",
          .doc = "Means over a grid of output_size windows; [1,1] is the global mean.",
          .inputs = {{"x", "[N,C,H,W]"}},
          .attrs = {{"output_size", AttrKind::integers, std::nullopt, "height, width of the output"}},
          .traits = Trait::compute | Trait::wide,
          .primitive = Primitive::mean_pool,
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .work = [](const Call& call) { return Work{.macs = 0, .flops = elements(call.input(0).shape)}; },
          .keeps_batch = keeps_batch_of_first,
          .constraints = {},
          .tolerance = 1e-5,
          .samples = {"adaptive_avg_pool2d(f32[2,3,7,5]) {output_size = [1,1]}",
                      "adaptive_avg_pool2d(f32[1,4,h,9]) {output_size = [3,2]}"}};
}

}  // namespace hetnn::ops
