// The factors between scales by which a layer's integers become those of its result.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "hetnn/backends/npu/network.h"
#include "hetnn/base/integer_rows.h"

namespace hetnn::backends::scheduling {

/// From a product's sums to its result, one for each filter or column.
std::vector<double> product_factors_of(const Layer& layer, Rounding rounding);
/// Of a pair's operands to a common scale with more bits, and from there to its result. Of products as they are.
std::vector<double> pair_factors_of(const Layer& layer);
/// Of a product's result, its addend and their sum.
std::vector<double> addend_factors_of(const Layer& layer);

/// The values whose scales those factors lead between: two operands and the result.
std::array<const ir::Value*, 3> pair_of(const Layer& layer);
std::array<const ir::Value*, 3> addend_pair_of(const Layer& layer);

/// What a softmax of two scales reads, and a normalization by constants; none where some factor has no form.
SoftmaxTable softmax_table_of(const Layer& layer);
std::optional<NormalFactors> normal_factors_of(const Layer& layer);

/// Why the engines have no such factors or sums, in a sentence about the layer's node; empty where they have.
std::string why_no_factors(const Layer& layer);

}  // namespace hetnn::backends::scheduling
