// Meanings of a million elements of f32 on one core: the plain kernels and the reference.
#include <benchmark/benchmark.h>

#include "hetnn/ops/op_def.h"

namespace hetnn::ops {
namespace {

// One output in memory that stays.
class Kept final : public Results {
 public:
  std::byte* allocate(size_t, DType dtype, std::span<const int64_t> shape) override {
    const int64_t elems = View(dtype, shape, nullptr).elems();
    memory_.resize(static_cast<size_t>(elems * dtype_bytes(dtype)));
    return memory_.data();
  }

 private:
  std::vector<std::byte> memory_;
};

void run(benchmark::State& state, std::string_view op, std::vector<std::vector<int64_t>> shapes, Attrs attrs) {
  Call call;
  call.op = &OpTable::global().get(op);
  call.attrs = std::move(attrs);
  std::vector<Tensor> tensors;
  std::vector<Type> types;
  for (const std::vector<int64_t>& shape : shapes) {
    std::byte* data = nullptr;
    tensors.push_back(Tensor::zeros(DType::f32, shape, &data));
    for (int64_t k = 0; k < tensors.back().elems(); ++k)
      reinterpret_cast<float*>(data)[k] = static_cast<float>(k * 7919 % 1000) / 100 - 5;
    types.push_back({DType::f32, {shape.begin(), shape.end()}});
  }
  for (const Type& type : types) call.inputs.push_back({&type, nullptr});
  complete(call);
  const BoundCall bound(call, {});
  const std::vector<View> views(tensors.begin(), tensors.end());
  Kept results;
  for (auto _ : state) evaluate(bound.call(), views, results);
}

void add(benchmark::State& state) { run(state, "add", {{1024, 1024}, {1024, 1024}}, {}); }
void add_row(benchmark::State& state) { run(state, "add", {{1024, 1024}, {1024}}, {}); }
void softmax(benchmark::State& state) { run(state, "softmax", {{1024, 1024}}, {}); }
void softmax_axis_1(benchmark::State& state) { run(state, "softmax", {{8, 128, 32, 32}}, {{"axis", Dim(1)}}); }
void transpose(benchmark::State& state) { run(state, "permute", {{1024, 1024}}, {{"perm", std::vector<Dim>{1, 0}}}); }
void permute(benchmark::State& state) {
  run(state, "permute", {{8, 128, 32, 32}}, {{"perm", std::vector<Dim>{0, 2, 3, 1}}});
}
void sum(benchmark::State& state) { run(state, "sum", {{1024, 1024}}, {{"axes", std::vector<Dim>{1}}}); }
void linear(benchmark::State& state) { run(state, "linear", {{64, 512}, {512, 512}}, {}); }
void conv2d(benchmark::State& state) {
  run(state, "conv2d", {{1, 32, 56, 56}, {32, 32, 3, 3}}, {{"padding", std::vector<Dim>{1, 1}}});
}

BENCHMARK(add)->Unit(benchmark::kMillisecond);
BENCHMARK(add_row)->Unit(benchmark::kMillisecond);
BENCHMARK(softmax)->Unit(benchmark::kMillisecond);
BENCHMARK(softmax_axis_1)->Unit(benchmark::kMillisecond);
BENCHMARK(transpose)->Unit(benchmark::kMillisecond);
BENCHMARK(permute)->Unit(benchmark::kMillisecond);
BENCHMARK(sum)->Unit(benchmark::kMillisecond);
BENCHMARK(linear)->Unit(benchmark::kMillisecond);
BENCHMARK(conv2d)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hetnn::ops
