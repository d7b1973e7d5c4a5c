// A block of memory aligned for vector loads and for cache lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

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

/// The boundary for a block of this size.
constexpr std::align_val_t alignment_of(std::size_t size_bytes) {
  return std::align_val_t{size_bytes >= 2 * kHugePage_bytes ? kHugePage_bytes : kBufferAlignment_bytes};
}

/// Memory at that boundary. bad_alloc where there is none.
inline void* aligned_memory(std::size_t size_bytes) {
  void* const out = ::operator new(size_bytes == 0 ? 1 : size_bytes, alignment_of(size_bytes));
#if defined(__linux__)
  // Advice only: where it is refused the memory is as good as any other.
  if (size_bytes >= 2 * kHugePage_bytes) madvise(out, size_bytes, MADV_HUGEPAGE);
#endif
  return out;
}

/// For vectors that lie as buffers do, and whose elements are made without a value where none is given.
template <typename T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT(google-explicit-constructor): the standard's form
  T* allocate(std::size_t count) { return static_cast<T*>(aligned_memory(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) { ::operator delete(memory, alignment_of(count * sizeof(T))); }
  template <typename U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
  bool operator==(const AlignedAllocator&) const = default;
};

/// Owns `size_bytes` bytes at a 64-byte boundary at least; contents start as zeros. Move-only.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size_bytes)
      : size_bytes_(size_bytes),
        data_(static_cast<std::byte*>(aligned_memory(size_bytes)), detail::AlignedFree{alignment_of(size_bytes)}) {
    std::memset(data_.get(), 0, size_bytes);
  }

  std::byte* data() const { return data_.get(); }
  std::size_t size_bytes() const { return size_bytes_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  std::size_t size_bytes_ = 0;
  std::unique_ptr<std::byte, detail::AlignedFree> data_;
};

}  // namespace hetnn
