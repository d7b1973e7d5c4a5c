// Runs one variant of an npu subprogram on a simulated machine.
#include "hetnn/runtime/npu_executor.h"

#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/npu/spec.h"
#include "hetnn/runtime/layout_copy.h"
#include "hetnn/sim/machine.h"

namespace hetnn::runtime {
struct NpuExecutor::Impl {
  const program::NpuVariant& variant;
  sim::Machine machine;

  // Between a buffer and the machine's dense memory.
  void transfer(const program::NpuPort& port, const BoundBuffer& buffer, std::byte* host, bool upload) {
    std::byte* device = machine.arena() + port.offset_bytes;
    const Layout layout = buffer.view.layout;
    if (buffer.shape.size() != 4 || (layout == Layout::plain && port.layout == Layout::plain)) {
      const int64_t bytes = buffer.view.span_bytes();
      std::memcpy(upload ? device : host, upload ? host : device, static_cast<size_t>(bytes));
      return;
    }
    const MapLayout outside{layout, buffer.view.pitch_elems}, inside{port.layout, buffer.shape[1]};
    const int64_t elem_bytes = dtype_bytes(port.dtype);
    if (upload) {
      copy_map(elem_bytes, buffer.shape, host, outside, device, inside);
    } else {
      copy_map(elem_bytes, buffer.shape, device, inside, host, outside);
    }
  }
};

NpuExecutor::NpuExecutor(const program::Program& program, const program::Subprogram& subprogram,
                         const program::NpuVariant& variant) {
  const std::byte* weights = program.weights.bytes.data();
  const auto& code = std::get<program::NpuCode>(subprogram.code);
  impl_.reset(new Impl{variant,
                       {hetnn::npu::parse_spec(code.spec_json, subprogram.device),
                        {reinterpret_cast<const uint64_t*>(weights + variant.words_offset_bytes),
                         static_cast<size_t>(variant.word_count)},
                        {weights + variant.image_offset_bytes, static_cast<size_t>(variant.image_bytes)},
                        variant.dram_bytes}});
}

NpuExecutor::~NpuExecutor() = default;

void NpuExecutor::run(const std::vector<std::byte*>& addresses, const std::vector<BoundBuffer>& buffers) {
  for (const program::NpuPort& port : impl_->variant.inputs) {
    const auto id = static_cast<size_t>(port.buffer);
    impl_->transfer(port, buffers[id], addresses[id], true);
  }
  impl_->machine.run();
  for (const program::NpuPort& port : impl_->variant.outputs) {
    const auto id = static_cast<size_t>(port.buffer);
    impl_->transfer(port, buffers[id], addresses[id], false);
  }
}

int64_t NpuExecutor::cycles() const { return impl_->machine.timing().cycles; }
double NpuExecutor::simulated_us() const { return impl_->machine.seconds() * 1e6; }

}  // namespace hetnn::runtime
