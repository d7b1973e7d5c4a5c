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

/// An operand's elements one after another, or one block that stands for all of them.
struct ComparedRun {
  const std::byte* at;
  bool advances;
};

/// The same of any number of elements of so many bytes: those behind the last whole block are a block of their own.
void compare_runs(CompareFunction function, int64_t elem_bytes, const ComparedRun& a, const ComparedRun& b, int64_t n,
                  uint8_t* out);

/// out[i] = a[i] where holds[i] is not 0, else b[i], bit for bit; `out` may be `a` or `b`.
using ChoiceFunction = void (*)(const uint8_t* holds, const float* a, const float* b, float* out, int64_t n);

/// What else is done with truth values of a byte each, for this machine.
struct TruthOps {
  ChoiceFunction choose;
  /// The same of truth values; `out` may be any of them.
  void (*choose_truths)(const uint8_t* holds, const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t n);
  /// 1 and 0 as f32, and back, where all that is not 0 is true.
  void (*widen)(const uint8_t* from, float* to, int64_t n);
  void (*narrow)(const float* from, uint8_t* to, int64_t n);
};
const TruthOps& truth_ops();

}  // namespace hetnn::kernels
