// The instruction sets the kernels were compiled for and this machine has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hetnn::kernels {

/// Names from the best down, as "AMX", "AVX3" (AVX-512), "AVX2", "NEON", "EMU128".
std::vector<std::string> available_isas();

/// Kernels made from now on use that instruction set; "" goes back to the best. For tests and comparisons, not while
/// kernels are being made on other threads. Throws Unsupported for a name that is not available.
void restrict_isa(const std::string& name);

/// The instruction set in use, as Highway numbers its targets: the best, or no better than the environment's
/// HETNN_TARGET says ("amx", "avx512", "avx2", "neon", "baseline"); of AMX, the AVX-512 that comes with it. Throws
/// InvalidModel where it says something else.
int64_t chosen_isa();

/// Whether products of integers and of bf16 use tiles (AMX): the processor has them, nothing narrower is in use, and
/// the system, which is asked once, grants this process their state.
bool uses_amx();

/// The one that products of integers use: AVX-512 where it multiplies bytes (VNNI), else AVX2.
int64_t chosen_integer_isa();

/// Whether AVX2 comes with products of bytes (AVX-VNNI).
bool has_avx_vnni();

/// Whether AVX-512 comes with permutations of bytes (VBMI).
bool has_avx512_vbmi();

/// The function F of the instruction set ISA, of those that Highway compiled it for. Highway's own dispatcher would
/// need its library.
#define HETNN_CHOSEN_BY(ISA, F) \
  ((ISA) == HWY_AVX3 ? HWY_CHOOSE_AVX3(F) : ((ISA) == HWY_AVX2 ? HWY_CHOOSE_AVX2(F) : &HWY_STATIC_DISPATCH(F)))
/// The same of the instruction set in use.
#define HETNN_CHOSEN(F) HETNN_CHOSEN_BY(::hetnn::kernels::chosen_isa(), F)

}  // namespace hetnn::kernels
