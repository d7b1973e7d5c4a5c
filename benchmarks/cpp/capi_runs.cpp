// Runs a second of the network in $HETNN_NETWORK, which has one f32 input and one output, through the C interface.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <vector>

#include "hetnn/capi/hetnn.h"

namespace {

hetnn_executable* network() {
  static hetnn_executable* const loaded = [] {
    const char* path = std::getenv("HETNN_NETWORK");
    const hetnn_options options = {sizeof options, 1, 0, 0};
    hetnn_executable* out = nullptr;
    if (!path || hetnn_load(path, &options, &out) != HETNN_OK) std::abort();
    return out;
  }();
  return loaded;
}

// A tensor of a port, and the values it lies on.
struct Array {
  std::vector<float> values;
  hetnn_tensor tensor;

  explicit Array(const hetnn_port& port) {
    size_t count = 1;
    for (int32_t d = 0; d < port.rank; ++d) count *= static_cast<size_t>(port.dims[d]);
    values.assign(count, 0.5F);
    tensor = {sizeof tensor, values.data(), port.dtype, port.rank, port.dims};
  }
};

void run(benchmark::State& state) {
  hetnn_port port = {sizeof port, nullptr, HETNN_F32, 0, nullptr};
  if (hetnn_input(network(), 0, &port) != HETNN_OK) std::abort();
  const Array x(port);
  if (hetnn_output(network(), 0, &port) != HETNN_OK) std::abort();
  Array y(port);
  for (auto _ : state) {
    if (hetnn_run(network(), nullptr, &x.tensor, 1, &y.tensor, 1) != HETNN_OK) std::abort();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(run)->Threads(1)->Threads(8)->UseRealTime();

}  // namespace
