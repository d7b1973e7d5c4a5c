// Which instruction sets the vectorized kernels are compiled for. Include before hwy/foreach_target.h.
//
// Three on x86 (the compiler's baseline emulated, AVX2, AVX-512) and NEON on ARM: each further target compiles every
// kernel once more and has brought nothing measurable here.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
