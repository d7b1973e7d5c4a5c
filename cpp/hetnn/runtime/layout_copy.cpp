// One loop over pixels and channels, with strides for both sides.
#include "hetnn/runtime/layout_copy.h"

#include <cstring>

namespace hetnn::runtime {
namespace {

// In elements.
struct Strides {
  int64_t image, channel, row, column;
};

Strides strides_of(const std::vector<int64_t>& shape, const MapLayout& map) {
  const int64_t c = shape[1], h = shape[2], w = shape[3];
  if (map.layout == Layout::plain) return {c * h * w, h * w, w, 1};
  return {h * w * map.pitch_elems, 1, w * map.pitch_elems, map.pitch_elems};
}

template <typename T>
void copy_elements(const std::vector<int64_t>& shape, const std::byte* source, const Strides& in, std::byte* target,
                   const Strides& out) {
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

}  // namespace

void copy_value(DType dtype, const std::vector<int64_t>& shape, const std::byte* from, const MapLayout& in,
                std::byte* to, const MapLayout& out) {
  const int64_t elem_bytes = dtype_bytes(dtype);
  if (shape.size() != 4 || (in.layout == Layout::plain && out.layout == Layout::plain)) {
    int64_t bytes = elem_bytes;
    for (const int64_t dim : shape) bytes *= dim;
    if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  const auto copy = elem_bytes == 1   ? copy_elements<uint8_t>
                    : elem_bytes == 2 ? copy_elements<uint16_t>
                    : elem_bytes == 4 ? copy_elements<uint32_t>
                                      : copy_elements<uint64_t>;
  copy(shape, from, strides_of(shape, in), to, strides_of(shape, out));
}

}  // namespace hetnn::runtime
