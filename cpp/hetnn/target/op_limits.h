// Support of a device whose spec lists operators with element types and limits.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/target/target.h"

namespace hetnn::target {

/// What a spec says of one operator. A limit `kernel_h_max` bounds the operator's metric `kernel_h`, `…_min` from
/// below.
struct OpLimits {
  std::vector<DType> dtypes;
  std::map<std::string, double, std::less<>> limits;
  /// Largest rank of an operand; 0: no bound.
  int max_rank = 0;
};
using OpLimitsTable = std::map<std::string, OpLimits, std::less<>>;

/// InvalidModel naming a limit of a metric that its operator does not have, and those that it has.
void check_metric_names(std::string_view device, const OpLimitsTable& table);

/// Every reason why `node` does not fit: operator not listed, element type, rank, a metric beyond its limit, or a
/// structural constraint of `device_class`. Metrics and shapes that depend on symbols are taken at `bindings`.
Support check_limits(const ir::Node& node, std::string_view device_class, std::string_view device,
                     const OpLimitsTable& table, const Bindings& bindings);

}  // namespace hetnn::target
