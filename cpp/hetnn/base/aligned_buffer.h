// A block of memory aligned for vector loads and for cache lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hetnn {

inline constexpr std::size_t kBufferAlignment_bytes = 64;

/// Buffers from twice this size on start at such a boundary and ask for pages of this size, which spare address
/// translations.
inline constexpr std::size_t kHugePage_bytes = std::size_t{2} << 20;

namespace detail {
struct AlignedFree {
  std::align_val_t alignment{kBufferAlignment_bytes};
  void operator()(std::byte* p) const { ::operator delete(p, alignment); }
};
}  // namespace detail

/// Owns `size_bytes` bytes at a 64-byte boundary at least; contents start as zeros. Move-only.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size_bytes)
      : size_bytes_(size_bytes),
        data_(static_cast<std::byte*>(::operator new(size_bytes == 0 ? 1 : size_bytes, alignment_of(size_bytes))),
              detail::AlignedFree{alignment_of(size_bytes)}) {
#if defined(__linux__)
    // Advice only: where it is refused the buffer is as good as any other.
    if (size_bytes >= 2 * kHugePage_bytes) madvise(data_.get(), size_bytes, MADV_HUGEPAGE);
#endif
    std::memset(data_.get(), 0, size_bytes);
  }

  std::byte* data() const { return data_.get(); }
  std::size_t size_bytes() const { return size_bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  static std::align_val_t alignment_of(std::size_t size_bytes) {
    return std::align_val_t{size_bytes >= 2 * kHugePage_bytes ? kHugePage_bytes : kBufferAlignment_bytes};
  }
  std::size_t size_bytes_ = 0;
  std::unique_ptr<std::byte, detail::AlignedFree> data_;
};

}  // namespace hetnn
