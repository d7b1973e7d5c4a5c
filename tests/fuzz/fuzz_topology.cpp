// Topologies as CSV: the first byte chooses the machine; what is read, is timed.
#include <algorithm>

#include "fuzz.h"
#include "hetnn/npu/timing.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

void use(unsigned machine, std::string_view csv) {
  npu::Spec spec = npu::systolic_spec(1 + static_cast<int>(machine % 8) * 37, 1 + static_cast<int>(machine / 32) * 21);
  spec.mac.dataflow = std::array{npu::Dataflow::ws, npu::Dataflow::os, npu::Dataflow::is}[machine % 3];
  for (const npu::TopologyLayer& layer : npu::read_topology(csv, "fuzz")) {
    const npu::LayerTiming timing = npu::time_layer(spec, layer, machine % 2 == 0 ? 0.0 : 0.25);
    HETNN_ASSERT(timing.compute_cycles >= 0 && timing.stall_cycles >= 0 &&
                     timing.total_cycles == timing.compute_cycles + timing.stall_cycles,
                 timing.compute_cycles, " + ", timing.stall_cycles, " against ", timing.total_cycles);
    HETNN_ASSERT(timing.utilization >= 0 && timing.utilization <= 1, timing.utilization);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) fuzz::attempt([&] { use(data[0], fuzz::text_of(data + 1, size - 1)); });
  return 0;
}
