// Values that are kept for work behind a model's result, as for the gradients of a loss, computed again instead.
#pragma once

#include <cstdint>
#include <functional>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// The most bytes, under the hints, of values computed until the first output that is no state's next value, which lie
/// in memory at one time behind it, as they are or computed again; inputs and outputs of the model left out, views of
/// one value counted once.
struct Kept {
  int64_t before_bytes = 0, after_bytes = 0;
  size_t nodes = 0;  // that are computed again
};

/// Computes values again, just ahead of the first node behind the result that reads them, until no more than the budget
/// is kept: first those that free the most for the time that it takes. Changes no value. DoesNotFit where no choice
/// that was found keeps so little.
Kept recompute(ir::Graph& graph, int64_t budget_bytes, const std::function<double(const ir::Node&)>& time_us);

}  // namespace hetnn::passes
