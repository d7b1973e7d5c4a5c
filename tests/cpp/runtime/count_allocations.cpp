// The program's operator new, which counts.
#include "count_allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> counted{0};

void* counted_block(size_t size, size_t alignment) {
  ++counted;
  if (void* made = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)) return made;
  throw std::bad_alloc();
}

}  // namespace

int64_t allocations() { return counted; }

void* operator new(size_t size) { return counted_block(size == 0 ? 1 : size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) {
  return counted_block(size == 0 ? 1 : size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
