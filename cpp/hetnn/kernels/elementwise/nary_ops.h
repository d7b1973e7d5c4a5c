// Passes that combine up to 16 streams into one, every coefficient in a register.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

inline constexpr int kMaxNaryGroup = 16;

/// out[i] = start[i] op inputs[0][i] op inputs[1][i] ...; without start the first input takes its place (negated in a
/// subtraction, times its coefficient in a weighted sum). out may be start or any of the inputs.
struct NaryPass {
  const float* const* inputs;
  const float* coefficients;  // weighted sums only
  const float* start;         // or null
  float* out;
  int64_t n;
  bool stream;  // write past the caches; out must be 64-byte aligned
};

using NaryFunction = void (*)(const NaryPass&);

/// By number of inputs, 1 to 16.
struct NaryTable {
  NaryFunction add[kMaxNaryGroup + 1];
  NaryFunction subtract[kMaxNaryGroup + 1];
  NaryFunction weigh[kMaxNaryGroup + 1];          // fused multiply-add
  NaryFunction weigh_rounded[kMaxNaryGroup + 1];  // product and sum each rounded, as two operations would
  NaryFunction multiply[kMaxNaryGroup + 1];
  NaryFunction max[kMaxNaryGroup + 1];
  NaryFunction min[kMaxNaryGroup + 1];
};

const NaryTable& nary_table();

}  // namespace hetnn::kernels
