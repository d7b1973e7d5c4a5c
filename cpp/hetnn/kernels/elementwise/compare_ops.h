// Comparisons of runs of elements for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hetnn/base/dtype.h"

namespace hetnn::kernels {

/// What is asked of two elements; the other comparisons are these of exchanged operands or their opposites. Not less is
/// asked of f32 alone: NaN is neither less nor not less.
enum class Relation : uint8_t { equal, greater, not_less, both, either, one };

/// So many elements at once; runs are padded to whole ones.
inline constexpr int64_t kCompareBlock = 64;

/// out[i] = relation(a[i], b[i]) ^ opposite, 0 or 1, for `n` elements, a multiple of kCompareBlock. An operand that
/// does not advance is the same block each time.
struct CompareRun {
  const std::byte* a;
  const std::byte* b;
  bool a_advances, b_advances;
  bool opposite;
  uint8_t* out;
  int64_t n;
};

using CompareFunction = void (*)(const CompareRun&);

/// The function for this machine; null where the relation is not one of that type.
CompareFunction compare_function(Relation relation, DType dtype);

}  // namespace hetnn::kernels
