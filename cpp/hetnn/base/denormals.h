// Numbers too small for a normal f32 or f64, with which arithmetic takes some hundred times as long.
#pragma once

#include <cstdint>

namespace hetnn {

/// While it lives, the thread that made it takes them for zeros where `flush`, and makes zeros of such results.
class DenormalsAsZeros {
 public:
  explicit DenormalsAsZeros(bool flush) : before_(mode()), flush_(flush) {
    if (flush_) set_mode(before_ | kFlush);
  }
  ~DenormalsAsZeros() {
    if (flush_) set_mode(before_);
  }
  DenormalsAsZeros(const DenormalsAsZeros&) = delete;
  DenormalsAsZeros& operator=(const DenormalsAsZeros&) = delete;

 private:
#if defined(__x86_64__)
  using Mode = uint32_t;
  static constexpr Mode kFlush = 0x8040;  // flush to zero, denormals are zeros
  static Mode mode() { return __builtin_ia32_stmxcsr(); }
  static void set_mode(Mode mode) { __builtin_ia32_ldmxcsr(mode); }
#elif defined(__aarch64__)
  using Mode = uint64_t;
  static constexpr Mode kFlush = uint64_t{1} << 24;
  static Mode mode() {
    Mode found;
    asm volatile("mrs %0, fpcr" : "=r"(found));
    return found;
  }
  static void set_mode(Mode mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  using Mode = uint32_t;
  static constexpr Mode kFlush = 0;
  static Mode mode() { return 0; }
  static void set_mode(Mode) {}
#endif

  const Mode before_;
  const bool flush_;
};

}  // namespace hetnn
