// Quantized calls whose integers are computed as such, instead of the reals that they stand for: exact sums and one
// factor to the scale of the result (docs/numerics.md).
#pragma once

#include <optional>

#include "hetnn/base/requantize.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::ops {

/// How the integers of a call become the result's; none for a call that is computed on reals. Convolutions and products
/// of quantized operands, whose weights' scales are those of filters, have one always, half_even_fp32 unless they state
/// another; sums, products and extremes of
/// elements, means, PReLU, movement, changes of scale, softmax and normalization of i8 where they state one; but for
/// half_even_fp32, which elements, PReLU and changes of scale have on the reals.
std::optional<Rounding> integer_rounding(const Call& call);

/// The rounding that a call states; none where it states none.
std::optional<Rounding> stated_rounding(const Call& call);

/// Whether weights have one scale or those of a layer's filters, which are factors of its sums; true of what is no such
/// layer. `weights` may be the integers of the reals that the call reads.
bool has_scales_of_filters(const Call& call, const Type& weights);

/// A convolution or product of quantized operands that states no scale: its result is the reals of its sums.
bool has_real_sums(const Call& call);

/// A bias, less its zero point, as an integer at the scale of the sums.
int64_t bias_in_sums(int64_t steps, double scale, double scale_of_sums);

/// A factor between the scales of a call that its integers cannot be multiplied by: outside (0, 2^30).
std::optional<double> impossible_factor(const Call& call);

/// Runs the call on its integers; `call` has a rounding.
void evaluate_integers(const Call& call, std::span<const View> inputs, Results& results, const Host& host);

}  // namespace hetnn::ops
