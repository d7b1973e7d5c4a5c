// Where each rule fires and where each of its guards refuses, as data.
#pragma once

#include <string_view>
#include <vector>

namespace hetnn::passes {

enum class Values : uint8_t { random, edge, special };

/// The rule alone is applied to `before`; the operators of the result, constants left out, are `after`; and the results
/// agree within `tolerance` on the kind of values given (and on those before it in the list).
struct Fires {
  std::string_view rule;
  std::string_view before;
  std::string_view after;
  double tolerance = 0;
  Values values = Values::special;
};

/// The rule's pattern fits somewhere in `graph`, and the guard with this text is the first to refuse.
struct Refuses {
  std::string_view rule;
  std::string_view guard;
  std::string_view graph;
};

struct Cases {
  std::vector<Fires> fires;
  std::vector<Refuses> refuses;
};

const Cases& identity_cases();
const Cases& weight_cases();
const Cases& movement_cases();
const Cases& activation_cases();
const Cases& gelu_cases();
const Cases& piece_cases();
const Cases& prelu_cases();
const Cases& piecewise_cases();
const Cases& arithmetic_cases();
const Cases& convolution_cases();
const Cases& stride_cases();
const Cases& pooling_cases();
const Cases& shape_cases();
const Cases& merging_cases();
const Cases& quantized_cases();
const Cases& conversion_cases();
const Cases& block_cases();
const Cases& combining_cases();
const Cases& moving_cases();

}  // namespace hetnn::passes
