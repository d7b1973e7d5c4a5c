// What this machine has of what the kernels were compiled for.
#include "hetnn/kernels/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/kernels/simd_targets.h"
// After simd_targets.h, which it reads.
#include "hwy/targets.h"

namespace hetnn::kernels {
namespace {

// Highway's targets from the best down; the static one is what the compiler may use anywhere.
std::vector<int64_t> available() {
  std::vector<int64_t> out;
#if defined(__x86_64__)
#if defined(__clang__)
  const bool f16c = true;  // older releases have no name for it; no processor has AVX2 without it
#else
  const bool f16c = __builtin_cpu_supports("f16c");
#endif
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && f16c && __builtin_cpu_supports("aes") &&
                    __builtin_cpu_supports("pclmul");
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw");
  if (avx3 && (HWY_TARGETS & HWY_AVX3) && HWY_STATIC_TARGET != HWY_AVX3) out.push_back(HWY_AVX3);
  if (avx2 && (HWY_TARGETS & HWY_AVX2) && HWY_STATIC_TARGET != HWY_AVX2) out.push_back(HWY_AVX2);
#endif
  out.push_back(HWY_STATIC_TARGET);
  return out;
}

std::atomic<int64_t> restricted{0};

constexpr std::pair<std::string_view, int64_t> kNames[] = {
    {"avx512", HWY_AVX3}, {"avx2", HWY_AVX2}, {"neon", HWY_NEON}, {"baseline", HWY_STATIC_TARGET}};

int64_t wanted_isa() {
  const std::vector<int64_t> here = available();
  const char* said = std::getenv("HETNN_TARGET");
  if (!said || !*said) return here.front();
  std::string known;
  for (const auto& [name, target] : kNames) {
    if (std::ranges::find(here, target) == here.end()) continue;
    if (name == said) return target;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw InvalidModel(text("the environment's HETNN_TARGET says which instructions to use; this machine has ", known,
                          ", got '", said, "'. Set one of them, or unset it for the best."));
}

}  // namespace

int64_t chosen_isa() {
  static const int64_t best = wanted_isa();
  const int64_t only = restricted.load(std::memory_order_relaxed);
  return only ? only : best;
}

int64_t chosen_integer_isa() {
  const int64_t isa = chosen_isa();
#if defined(__x86_64__)
  if (isa == HWY_AVX3 && !__builtin_cpu_supports("avx512vnni")) return available().at(1);
#endif
  return isa;
}

bool has_avx_vnni() {
#if defined(__x86_64__) && !defined(__clang__)
  return __builtin_cpu_supports("avxvnni");
#else
  return false;  // older releases of clang have no name for it
#endif
}

bool has_avx512_vbmi() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512vbmi");
#else
  return false;
#endif
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const int64_t target : available()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void restrict_isa(const std::string& name) {
  restricted = 0;
  if (name.empty()) return;
  std::string known;
  for (const int64_t target : available()) {
    if (name == hwy::TargetName(target)) {
      restricted = target;
      return;
    }
    known.append(known.empty() ? "" : ", ").append(hwy::TargetName(target));
  }
  throw Unsupported(
      text("instruction set '", name, "' is not available; this machine has ", known, ". Choose one of them."));
}

}  // namespace hetnn::kernels
