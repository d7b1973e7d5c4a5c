// A block of memory aligned for vector loads and for cache lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace hetnn {

inline constexpr std::size_t kBufferAlignment_bytes = 64;

/// Owns `size_bytes` bytes at a 64-byte boundary; contents start as zeros. Move-only.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size_bytes)
      : size_bytes_(size_bytes),
        data_(static_cast<std::byte*>(
            ::operator new (size_bytes == 0 ? 1 : size_bytes, std::align_val_t{kBufferAlignment_bytes}))) {
    std::memset(data_.get(), 0, size_bytes);
  }

  std::byte* data() const { return data_.get(); }
  std::size_t size_bytes() const { return size_bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{kBufferAlignment_bytes}); }
  };
  std::size_t size_bytes_ = 0;
  std::unique_ptr<std::byte, Free> data_;
};

}  // namespace hetnn
