// Buffers with lifetimes, three numbers each behind an alignment and a capacity: what is given places, is sound.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fuzz.h"
#include "hetnn/memory/fit.h"
#include "hetnn/memory/validate.h"

using namespace hetnn;  // NOLINT(google-build-using-namespace): all of this file is about it

namespace {

constexpr size_t kMost = 200;  // validating compares every pair

// The top byte says how many of the other bits count, so that small numbers are frequent.
int64_t number_of(uint64_t word) {
  const unsigned bits = static_cast<unsigned>(word >> 56) % 64;
  const auto value = static_cast<int64_t>(word & ((uint64_t{1} << std::min(bits, 62U)) - 1));
  return bits == 63 ? -value : value;
}

void use(const std::vector<uint64_t>& words) {
  std::vector<memory::Buffer> buffers;
  for (size_t k = 2; k + 2 < words.size() && buffers.size() < kMost; k += 3)
    buffers.push_back({number_of(words[k]), number_of(words[k + 1]), number_of(words[k + 2])});
  const int64_t alignment = int64_t{1} << words[0] % 13, capacity = number_of(words[1]);
  for (const bool heuristic : {false, true}) {
    const memory::FitResult result =
        memory::fit(buffers, capacity, {.alignment_bytes = alignment, .seconds = 0.002, .heuristic_only = heuristic});
    const auto fault = memory::validate(buffers, result.fit.offsets, result.fit.peak_bytes, alignment);
    HETNN_ASSERT(!fault, *fault);
    HETNN_ASSERT(
        result.fit.peak_bytes >= result.lower_bound_bytes && result.feasible == (result.fit.peak_bytes <= capacity),
        result.fit.peak_bytes, " of ", capacity, " where ", result.lower_bound_bytes, " are needed");
    HETNN_ASSERT(!(result.feasible && result.proven_infeasible));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint64_t> words(size / sizeof(uint64_t));
  if (words.size() < 2) return 0;
  std::memcpy(words.data(), data, words.size() * sizeof(uint64_t));
  fuzz::attempt([&] { use(words); });
  return 0;
}
