// Softmax and normalization of rows of i8 in integers: what quantized calls that name a rounding mean and an NPU
// computes, and the constants that both read. The formulas stand in docs/numerics.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hetnn/base/requantize.h"

namespace hetnn {

/// Normalized values have so many bits behind the point, shifts so many.
inline constexpr int kNormalBits = 24, kShiftBits = 16;
/// Elements of a row that is normalized, at most.
inline constexpr int64_t kMostNormalized = 1 << 14;
/// Bits by which a product of a normalized value and its weight is shifted, at most.
inline constexpr int kMostNormalShift = 62;

/// What a softmax reads: exp(-scale d) for d from 0 to 255 with 31 bits behind the point, as gemmlowp computes it, and
/// 1 / the scale of the result, of single_rounding.
struct SoftmaxTable {
  std::array<int32_t, 256> exponentials{};
  Requant factor;
};
/// For two scales; InvalidModel where 1 / `out_scale` is no factor.
SoftmaxTable softmax_table(double in_scale, double out_scale);
/// Whether a table that a device reads may be one.
bool is_sound(const SoftmaxTable& table);
/// One row, as LiteRT's reference kernel computes it where `out_scale` is 1/256; `out` may be `in`.
void softmax_row(const SoftmaxTable& table, int32_t out_zero, std::span<const int32_t> in, std::span<int32_t> out);

/// What a normalization reads of one channel: its weight, and its bias in steps of the result.
struct NormalFactor {
  int32_t weight = 0, bias = 0;
};
/// All that it reads: `eps` is added to 2^16 n^2 times the variance, and `shift` leads from products to kShiftBits.
struct NormalFactors {
  std::vector<NormalFactor> channels;
  int64_t eps = 0;
  int64_t shift = 1;
};
/// For real weights and biases of as many channels; none where some factor has no such form: rows longer than
/// kMostNormalized, |weight| / out_scale from 2^30 up, |bias| / out_scale from 2^15 up, eps from 2^45 (in_scale / n)^2
/// up.
std::optional<NormalFactors> normal_factors(std::span<const double> weights, std::span<const double> biases, double eps,
                                            double in_scale, double out_scale);
/// Whether what a device reads may be an eps.
bool is_sound_eps(int64_t eps);
/// One row; `out` may be `in`.
void normalize_row(std::span<const NormalFactor> channels, int64_t eps, int64_t shift, int32_t out_zero,
                   std::span<const int32_t> in, std::span<int32_t> out);

}  // namespace hetnn
