// Activations, additions and n-ary sums: nanoseconds per element and bytes per second, in and out of cache.
#include "kernels_bench.h"

namespace hetnn::kernels::bench {
namespace {

void unary(benchmark::State& state, const std::string& op) {
  const std::vector<int64_t> shape = {state.range(0)};
  const TensorView view = TensorView::plain(DType::f32, shape);
  run_kernel(state, "unary", {view}, view, {{"op", op}}, 1, 8.0 * static_cast<double>(shape[0]), "bytes");
}
BENCHMARK_CAPTURE(unary, relu, "relu")->Arg(4096)->Arg(1 << 20);
BENCHMARK_CAPTURE(unary, silu, "silu")->Arg(4096);
BENCHMARK_CAPTURE(unary, gelu, "gelu")->Arg(4096);
BENCHMARK_CAPTURE(unary, tanh, "tanh")->Arg(4096);
BENCHMARK_CAPTURE(unary, exp, "exp")->Arg(4096);

// Arguments: inputs, elements, fan-in.
void nary_sum(benchmark::State& state) {
  const std::vector<int64_t> shape = {state.range(1)};
  const TensorView view = TensorView::plain(DType::f32, shape);
  run_kernel(state, "nary", std::vector<TensorView>(static_cast<size_t>(state.range(0)), view), view,
             {{"fan_in", state.range(2)}}, 1, 4.0 * static_cast<double>((state.range(0) + 1) * shape[0]), "bytes");
}
BENCHMARK(nary_sum)
    ->ArgNames({"inputs", "elems", "fan_in"})
    ->ArgsProduct({{3, 4, 8, 16, 64}, {4096, 1 << 18}, {2, 4, 8, 16}})
    ->ArgsProduct({{3, 8}, {1 << 22}, {2, 4, 8, 16}});

// The same sum as a chain of two-operand additions: every intermediate result goes through memory.
void pairwise_sum(benchmark::State& state) {
  const int64_t inputs = state.range(0), elems = state.range(1);
  const std::vector<int64_t> shape = {elems};
  const TensorView view = TensorView::plain(DType::f32, shape);
  const std::vector<TensorView> operands = {view, view};
  const Params params = {{"op", "add"}};
  const std::unique_ptr<Kernel> add = find_kernel("binary")->create({operands, std::span(&view, 1), params});
  std::vector<AlignedBuffer> buffers;
  for (int64_t i = 0; i < inputs; ++i) buffers.emplace_back(static_cast<size_t>(elems) * 4);
  const AlignedBuffer sum(static_cast<size_t>(elems) * 4);
  SpinBarrier barrier(1);
  std::byte* const out[] = {sum.data()};
  for (auto _ : state) {
    const std::byte* so_far = buffers[0].data();
    for (int64_t i = 1; i < inputs; ++i) {
      const std::byte* const in[] = {so_far, buffers[static_cast<size_t>(i)].data()};
      add->run({0, 1, barrier, nullptr}, in, out);
      so_far = sum.data();
    }
  }
  state.counters["bytes/s"] =
      benchmark::Counter(4.0 * static_cast<double>((inputs + 1) * elems) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(pairwise_sum)
    ->ArgNames({"inputs", "elems"})
    ->ArgsProduct({{3, 4, 8, 16, 64}, {4096, 1 << 18}})
    ->Args({8, 1 << 22});

}  // namespace
}  // namespace hetnn::kernels::bench
