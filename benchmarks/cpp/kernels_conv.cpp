// Convolutions and matrix products at the shapes of ResNet, MobileNet and MiniLM.
#include "kernels_bench.h"

namespace hetnn::kernels::bench {
namespace {

const char* const kKernels[] = {"conv2d_direct",   "conv2d_few_channels", "conv2d_planes", "conv2d_winograd_2x2",
                                "conv2d_winograd", "conv2d_depthwise",    "conv2d_grouped"};
enum Row { kDirect, kFewChannels, kPlanes, kWinograd2x2, kWinograd, kDepthwise, kGrouped };

// Arguments: batch, channels, size, out channels, kernel, stride, groups, row, threads; 1x1 or 'same' padding. Images
// of up to 4 channels lie plain. Weights come from memory.
void conv2d(benchmark::State& state) {
  const int64_t n = state.range(0), c = state.range(1), size = state.range(2), o = state.range(3);
  const int64_t kernel = state.range(4), stride = state.range(5), groups = state.range(6), padding = kernel / 2;
  const int64_t out = (size + 2 * padding - kernel) / stride + 1;
  const Params params = {{"stride", std::vector<int64_t>{stride, stride}},
                         {"padding", std::vector<int64_t>{padding, padding}},
                         {"groups", groups}};
  const std::vector<int64_t> x = {n, c, size, size}, w = {o, c / groups, kernel, kernel}, y = {n, o, out, out};
  state.SetLabel(kKernels[state.range(7)]);
  run_kernel(
      state, kKernels[state.range(7)],
      {c <= 4 ? TensorView::plain(DType::f32, x) : TensorView::nhwc(DType::f32, x), TensorView::plain(DType::f32, w)},
      TensorView::nhwc(DType::f32, y), params, static_cast<int>(state.range(8)),
      2.0 * static_cast<double>(n * o * out * out * (c / groups) * kernel * kernel), "FLOP",
      {{.function = "relu", .input = -1, .values = {}}}, true);
}

const std::vector<std::string> kNames = {"n", "c", "size", "o", "kernel", "stride", "groups", "row", "threads"};

void resnet_shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames(kNames)->UseRealTime();
  for (const int64_t threads : {1, 2}) {
    bench->Args({1, 3, 224, 64, 7, 2, 1, kFewChannels, threads});
    bench->Args({1, 64, 56, 128, 3, 2, 1, kDirect, threads});
    bench->Args({1, 256, 56, 64, 1, 1, 1, kDirect, threads});
    bench->Args({1, 96, 112, 96, 3, 2, 96, kDepthwise, threads});
    bench->Args({1, 144, 56, 144, 3, 1, 144, kDepthwise, threads});
  }
}
BENCHMARK(conv2d)->Apply(resnet_shapes);

// Where kernels change places: what the constants of their work were fitted to. With
// --benchmark_enable_random_interleaving they run in turns.
void choices(benchmark::State& state) { conv2d(state); }
void rivals(benchmark::internal::Benchmark* bench) {
  bench->ArgNames(kNames)->UseRealTime();
  const auto both = [&](int64_t n, int64_t c, int64_t size, int64_t o, Row other) {
    for (const Row row : {other, kWinograd, kWinograd2x2}) bench->Args({n, c, size, o, 3, 1, 1, row, 2});
  };
  for (const int64_t size : {7, 10, 13})
    for (const int64_t n : {1, 2, 8}) {
      both(n, 32, size, 128, kDirect);
      both(n, 128, size, 32, kDirect);
      both(n, 256, size, 256, kDirect);
      both(n, 512, size, 512, kDirect);
    }
  for (const int64_t size : {14, 56})
    for (const int64_t o : {8, 64}) {
      both(1, 5, size, o, kFewChannels);
      both(1, 8, size, o, kFewChannels);
    }
  for (const int64_t n : {1, 8})
    for (const int64_t o : {16, 24, 32})
      for (const int64_t row : {kFewChannels, kPlanes}) bench->Args({n, 3, 224, o, 3, 2, 1, row, 2});
}
BENCHMARK(choices)->Apply(rivals);

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
