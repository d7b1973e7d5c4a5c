// What this machine has of what the kernels were compiled for.
#include "hetnn/kernels/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

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
  const bool f16c = true;  // older releases have no name for it; no processor
                           // has AVX2 without it
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

// AVX-512 and tiles. No target of Highway's; they are smaller the better, too.
constexpr int64_t kAmx = 1;
static_assert((HWY_TARGETS & kAmx) == 0);
constexpr const char* kAmxName = "AMX";

bool grants_amx() {
#if defined(__x86_64__) && defined(__linux__)
  if (available().front() != HWY_AVX3 || !__builtin_cpu_supports("avx512vnni")) return false;
  constexpr unsigned kTiles = 1U << 24, kOfBytes = 1U << 25, kOfBrains = 1U << 22;
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAll = kTiles | kOfBytes | kOfBrains;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAll) != kAll) return false;
  // Linux keeps their state for a process that has asked: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return false;
#endif
}

bool has_amx() {
  static const bool granted = grants_amx();
  return granted;
}

std::atomic<int64_t> restricted{0};

constexpr std::pair<std::string_view, int64_t> kNames[] = {
    {"amx", kAmx}, {"avx512", HWY_AVX3}, {"avx2", HWY_AVX2}, {"neon", HWY_NEON}, {"baseline", HWY_STATIC_TARGET}};

// kAmx: the best.
int64_t wanted_level() {
  const char* said = std::getenv("HETNN_TARGET");
  if (!said || !*said) return kAmx;
  std::vector<int64_t> here = available();
  if (has_amx()) here.push_back(kAmx);
  std::string known;
  for (const auto& [name, target] : kNames) {
    if (std::ranges::find(here, target) == here.end()) continue;
    if (name == said) return target;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw InvalidModel(
      text("the environment's HETNN_TARGET says which "
           "instructions to use; this machine has ",
           known, ", got '", said, "'. Set one of them, or unset it for the best."));
}

int64_t chosen_level() {
  static const int64_t best = wanted_level();
  const int64_t only = restricted.load(std::memory_order_relaxed);
  return only ? only : best;
}

}  // namespace

int64_t chosen_isa() {
  static const int64_t widest = available().front();
  const int64_t level = chosen_level();
  return level == kAmx ? widest : level;
}

bool uses_amx() { return chosen_level() == kAmx && has_amx(); }

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
  if (has_amx()) names.emplace_back(kAmxName);
  for (const int64_t target : available()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void restrict_isa(const std::string& name) {
  restricted = 0;
  if (name.empty()) return;
  std::vector<int64_t> levels = available();
  if (has_amx()) levels.insert(levels.begin(), kAmx);
  std::string known;
  for (const int64_t level : levels) {
    const char* const its_name = level == kAmx ? kAmxName : hwy::TargetName(level);
    if (name == its_name) {
      restricted = level;
      return;
    }
    known.append(known.empty() ? "" : ", ").append(its_name);
  }
  throw Unsupported(
      text("instruction set '", name, "' is not available; this machine has ", known, ". Choose one of them."));
}

}  // namespace hetnn::kernels
