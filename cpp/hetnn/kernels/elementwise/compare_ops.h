// Comparisons of runs of elements for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hetnn/ops/elementwise/function.h"

namespace hetnn::kernels {

/// So many elements at once; runs are padded to whole ones.
inline constexpr int64_t kCompareBlock = 64;

/// out[i] = predicate(a[i], b[i]), 0 or 1, for `n` elements, a multiple of kCompareBlock. An operand that
/// does not advance is the same block each time.
struct CompareRun {
  const std::byte* a;
  const std::byte* b;
  bool a_advances, b_advances;
  uint8_t* out;
  int64_t n;
};

using CompareFunction = void (*)(const CompareRun&);

/// The function for this machine; null where it has none of that type.
CompareFunction compare_function(ops::Predicate predicate, DType dtype);

}  // namespace hetnn::kernels
