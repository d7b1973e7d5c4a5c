// Runs one variant of an npu subprogram on a simulated machine.
#include "hetnn/runtime/npu_executor.h"

#include <cstring>

#include "hetnn/base/error.h"
#include "hetnn/npu/spec.h"
#include "hetnn/sim/machine.h"

namespace hetnn::runtime {
namespace {

// Where pixel and channel of a buffer lie, in elements: the same loop serves both directions and all layouts.
struct Strides {
  int64_t image, channel, row, column;
};

Strides strides_of(const std::vector<int64_t>& shape, Layout layout, int64_t pitch) {
  const int64_t c = shape[1], h = shape[2], w = shape[3];
  if (layout == Layout::plain) return {c * h * w, h * w, w, 1};
  return {h * w * pitch, 1, w * pitch, pitch};
}

template <typename T>
void copy_elements(const std::byte* source, const Strides& in, std::byte* target, const Strides& out,
                   const std::vector<int64_t>& shape) {
  const auto* from = reinterpret_cast<const T*>(source);
  auto* to = reinterpret_cast<T*>(target);
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t i = 0; i < shape[2]; ++i) {
      for (int64_t j = 0; j < shape[3]; ++j) {
        const T* read = from + n * in.image + i * in.row + j * in.column;
        T* write = to + n * out.image + i * out.row + j * out.column;
        for (int64_t c = 0; c < shape[1]; ++c) write[c * out.channel] = read[c * in.channel];
      }
    }
  }
}

// By the size of an element.
void copy_map(int64_t elem_bytes, const std::byte* from, const Strides& in, std::byte* to, const Strides& out,
              const std::vector<int64_t>& shape) {
  const auto copy = elem_bytes == 1   ? copy_elements<uint8_t>
                    : elem_bytes == 2 ? copy_elements<uint16_t>
                    : elem_bytes == 4 ? copy_elements<uint32_t>
                                      : copy_elements<uint64_t>;
  copy(from, in, to, out, shape);
}

}  // namespace

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
    const Strides outside = strides_of(buffer.shape, layout, buffer.view.pitch_elems);
    const Strides inside = strides_of(buffer.shape, port.layout, buffer.shape[1]);
    if (upload) {
      copy_map(dtype_bytes(port.dtype), host, outside, device, inside, buffer.shape);
    } else {
      copy_map(dtype_bytes(port.dtype), device, inside, host, outside, buffer.shape);
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
