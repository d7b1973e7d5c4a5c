// Sizes of memory, checked: products that leave 64 bits or any machine's memory
// are refused, never wrapped.
#pragma once

#include <cstdint>
#include <span>

#include "hetnn/base/error.h"

namespace hetnn {

/// Bytes that one value, an arena or a device's memory has at most: beyond any
/// machine, and sums of a few fit.
inline constexpr int64_t kMostBytes = int64_t{1} << 47;

/// The product of the factors. DoesNotFit naming `what` where one is negative
/// or the product exceeds `most`; a factor of 0 makes it 0, whatever the others
/// are.
inline int64_t checked_product(std::span<const int64_t> factors, const char* what, int64_t most = kMostBytes) {
  int64_t out = 1;
  bool fits = true, zero = false;
  for (const int64_t factor : factors) {
    zero = zero || factor == 0;
    fits = fits && factor >= 0 && !__builtin_mul_overflow(out, factor == 0 ? 1 : factor, &out) && out <= most;
  }
  if (fits) return zero ? 0 : out;
  std::string list;
  for (const int64_t factor : factors) list += text(list.empty() ? "" : " x ", factor);
  throw DoesNotFit(text(what, " would take ", list, "; at most ", most, " are possible. Check the sizes."));
}

}  // namespace hetnn
