// Zeroed memory straight from the system.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>

namespace hetnn {

namespace detail {
struct Unmap {
  std::size_t size_bytes = 0;
  void operator()(std::byte* data) const { ::munmap(data, size_bytes); }
};
}  // namespace detail

/// Zeros that take room page by page once they are touched, and go back to the system with their owner: an allocator
/// may keep large blocks that are free. Move-only.
class Pages {
 public:
  Pages() = default;
  /// bad_alloc where the system has none. Of `sparse` memory most is never touched, and none is set aside for it.
  explicit Pages(std::size_t size_bytes, bool sparse = false) {
    if (size_bytes == 0) return;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (sparse ? MAP_NORESERVE : 0);
    void* const mapped = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    data_ = {static_cast<std::byte*>(mapped), detail::Unmap{size_bytes}};
  }
  std::byte* data() const { return data_.get(); }
  std::size_t size_bytes() const { return data_.get_deleter().size_bytes; }

 private:
  std::unique_ptr<std::byte, detail::Unmap> data_;
};

}  // namespace hetnn
