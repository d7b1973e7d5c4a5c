// The program's own operator new, and functions of the system that stand before the C library's.
#include "faults.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local int64_t every = 0, countdown = 0, failures = 0;
std::atomic<int64_t> live{0};

void* block(size_t size, size_t alignment) {
  // The JSON library's destructors allocate, and cannot fail: values of 16 bytes each.
  if (every > 0 && size % 16 != 0 && --countdown == 0) {
    countdown = every;
    ++failures;
    throw std::bad_alloc();
  }
  void* made = std::aligned_alloc(alignment, (std::max<size_t>(size, 1) + alignment - 1) / alignment * alignment);
  if (!made) throw std::bad_alloc();
  ++live;
  return made;
}

void release(void* memory) {
  if (memory) --live;
  std::free(memory);
}

// The C library's function of this name.
template <typename F>
F* next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace hetnn::faults {

FailingAllocations::FailingAllocations(int64_t nth) {
  failures = 0;
  every = countdown = nth;
}
FailingAllocations::~FailingAllocations() { every = 0; }
int64_t FailingAllocations::failed() const { return failures; }

int64_t live_blocks() { return live; }

}  // namespace hetnn::faults

void* operator new(size_t size) { return block(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) { return block(size, static_cast<size_t>(alignment)); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }

extern "C" {

[[gnu::visibility("default")]] int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                  void* (*start)(void*), void* argument) noexcept {
  if (hetnn::faults::no_threads) return EAGAIN;
  return next<decltype(pthread_create)>("pthread_create")(thread, attributes, start, argument);
}

[[gnu::visibility("default")]] void* mmap(void* at, size_t size, int protection, int flags, int file,
                                          off_t offset) noexcept {
  if (hetnn::faults::no_mappings) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return next<decltype(mmap)>("mmap")(at, size, protection, flags, file, offset);
}

[[gnu::visibility("default")]] ssize_t write(int file, const void* bytes, size_t size) {
  if (hetnn::faults::short_writes) {
    size = std::min({size, size_t{100}, static_cast<size_t>(hetnn::faults::room_bytes)});
    if (size == 0) {
      errno = ENOSPC;
      return -1;
    }
    hetnn::faults::room_bytes -= static_cast<int64_t>(size);
  }
  return next<decltype(write)>("write")(file, bytes, size);
}

}  // extern "C"
