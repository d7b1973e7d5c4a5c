// Which instruction sets the vectorized kernels are compiled for. Include before hwy/foreach_target.h.
//
// Three on x86 (the compiler's baseline emulated, AVX2, AVX-512) and NEON on ARM: each further target compiles every
// kernel once more and has brought nothing measurable here. A target's bit is lower the better it is, so what is better
// than AVX3 goes by its bits: later releases of Highway have more of them, under names that older ones lack.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | (HWY_AVX3 - 1) | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
