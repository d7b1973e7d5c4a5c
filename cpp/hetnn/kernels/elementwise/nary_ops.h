// Passes that combine up to 16 streams into one, every coefficient in a register.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

inline constexpr int kMaxFanIn = 16;
/// What the parameter `fan_in` may be: 0 is the default.
inline bool is_fan_in(int64_t fan_in) { return fan_in == 0 || (fan_in >= 2 && fan_in <= kMaxFanIn); }
inline constexpr int kShortFanIn = 4;

/// out[i] = inputs[0][i] op inputs[1][i] op ..., for each of `rows` rows; a subtraction takes all but the first from
/// the first. out may be any of the inputs.
struct NaryPass {
  const float* const* inputs;
  const float* coefficients;  // weighted sums only: one per input
  float* out;
  int64_t n;
  bool stream;  // write past the caches; out must be 64-byte aligned
  int64_t rows = 1;
  const int64_t* ld_inputs = nullptr;  // elements from row to row of each input; of one row null
  int64_t ld_out = 0;
};

using NaryFunction = void (*)(const NaryPass&);

/// By number of inputs, from 1. Only sums are worth long passes: the others have up to kShortFanIn, null beyond.
struct NaryTable {
  NaryFunction add[kMaxFanIn + 1];
  NaryFunction subtract[kMaxFanIn + 1];
  NaryFunction weigh[kMaxFanIn + 1];          // fused multiply-add
  NaryFunction weigh_rounded[kMaxFanIn + 1];  // product and sum each rounded, as two operations would
  NaryFunction multiply[kMaxFanIn + 1];
  NaryFunction max[kMaxFanIn + 1];
  NaryFunction min[kMaxFanIn + 1];
};

const NaryTable& nary_table();

}  // namespace hetnn::kernels
