#include "hetnn/backends/npu/stream.h"

#include "hetnn/backends/npu/search.h"
#include "hetnn/npu/order.h"
#include "hetnn/npu/timing.h"

namespace hetnn::backends::npu {

Stream stream_of(const hetnn::npu::Spec& spec, const Network& network, const Schedule& schedule, Packer& packer) {
  const Expanded expanded = expand(spec, network, schedule, packer);
  std::vector<hetnn::npu::Instruction> instructions;
  std::vector<size_t> layers;
  for (const size_t k : hetnn::npu::early_transfers(spec, expanded.instructions)) {
    instructions.push_back(expanded.instructions[k]);
    layers.push_back(expanded.layers[k]);
  }
  hetnn::npu::Ordered ordered = hetnn::npu::ordered(instructions);
  Stream out{.instructions = std::move(ordered.instructions), .layers = {}};
  out.layers.reserve(out.instructions.size());
  for (size_t k = 0; k < layers.size(); ++k) {
    const size_t end = k + 1 < layers.size() ? ordered.begins[k + 1] : out.instructions.size();
    out.layers.resize(end, layers[k]);
  }
  return out;
}

int64_t cycles_of(const hetnn::npu::Spec& spec, const Network& network) {
  Packer packer(spec, nullptr);
  return hetnn::npu::time_stream(spec, stream_of(spec, network, find_schedule(spec, network), packer).instructions)
      .cycles;
}

}  // namespace hetnn::backends::npu
