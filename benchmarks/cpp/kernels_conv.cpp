// Convolutions and matrix products at the shapes of ResNet, MobileNet and MiniLM.
#include "kernels_bench.h"

namespace hetnn::kernels::bench {
namespace {

// Arguments: channels, size, out channels, kernel, stride, groups, algorithm (0 chosen, 1 direct), threads.
void conv2d(benchmark::State& state) {
  const int64_t c = state.range(0), size = state.range(1), o = state.range(2), kernel = state.range(3);
  const int64_t stride = state.range(4), groups = state.range(5), padding = kernel / 2;
  const int64_t out = (size + 2 * padding - kernel) / stride + 1;
  Params params = {{"stride", std::vector<int64_t>{stride, stride}},
                   {"padding", std::vector<int64_t>{padding, padding}},
                   {"groups", groups}};
  if (state.range(6) == 1) params.set("algorithm", "direct");
  const std::vector<int64_t> x = {1, c, size, size}, w = {o, c / groups, kernel, kernel}, y = {1, o, out, out};
  run_kernel(state, "conv2d", {TensorView::nhwc(DType::f32, x), TensorView::plain(DType::f32, w)},
             TensorView::nhwc(DType::f32, y), params, static_cast<int>(state.range(7)),
             2.0 * static_cast<double>(o * out * out * (c / groups) * kernel * kernel), "FLOP",
             {{.function = "relu", .input = -1, .values = {}}});
}

void resnet_shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"c", "size", "o", "kernel", "stride", "groups", "direct", "threads"})->UseRealTime();
  for (const int64_t threads : {1, 2})
    for (const int64_t direct : {0, 1}) {
      bench->Args({3, 224, 64, 7, 2, 1, direct, threads});
      bench->Args({64, 56, 64, 3, 1, 1, direct, threads});
      bench->Args({64, 56, 128, 3, 2, 1, direct, threads});
      bench->Args({128, 28, 128, 3, 1, 1, direct, threads});
      bench->Args({256, 14, 256, 3, 1, 1, direct, threads});
      bench->Args({512, 7, 512, 3, 1, 1, direct, threads});
      bench->Args({256, 56, 64, 1, 1, 1, direct, threads});
      bench->Args({96, 112, 96, 3, 2, 96, direct, threads});
      bench->Args({144, 56, 144, 3, 1, 144, direct, threads});
    }
}
BENCHMARK(conv2d)->Apply(resnet_shapes);

// Arguments: rows, out features, in features, threads.
void linear(benchmark::State& state) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const std::vector<int64_t> x = {m, k}, w = {n, k}, y = {m, n};
  run_kernel(state, "linear", {TensorView::plain(DType::f32, x), TensorView::plain(DType::f32, w)},
             TensorView::plain(DType::f32, y), {}, static_cast<int>(state.range(3)),
             2.0 * static_cast<double>(m * n * k), "FLOP");
}
BENCHMARK(linear)
    ->ArgNames({"m", "n", "k", "threads"})
    ->UseRealTime()
    ->ArgsProduct({{1, 16, 128}, {1536}, {384}, {1, 2}});

// Arguments: heads, length, head size, threads.
void attention(benchmark::State& state) {
  const std::vector<int64_t> shape = {1, state.range(0), state.range(1), state.range(2)};
  const TensorView view = TensorView::plain(DType::f32, shape);
  run_kernel(state, "attention", {view, view, view}, view, {}, static_cast<int>(state.range(3)),
             4.0 * static_cast<double>(shape[1] * shape[2] * shape[2] * shape[3]), "FLOP");
}
BENCHMARK(attention)
    ->ArgNames({"heads", "length", "size", "threads"})
    ->UseRealTime()
    ->Args({12, 128, 32, 1})
    ->Args({12, 197, 64, 1})
    ->Args({12, 197, 64, 2});

}  // namespace
}  // namespace hetnn::kernels::bench
