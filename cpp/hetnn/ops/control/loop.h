// What is to be known of loops besides their table row.
#pragma once

#include <vector>

#include "hetnn/ops/control/body.h"

namespace hetnn::ops {

/// A loop and its body have as many inputs before the values: those that control it, the round and whether it goes on.
inline constexpr size_t kBeforeValues = 2;

bool is_loop(const Call& call);

/// How many of the values are carried. Fails where there are not so many.
size_t carried_values(const Call& loop);

/// By value that is stacked, whether rounds are appended along its own first axis. Fails where there are not so many.
std::vector<bool> appended_values(const Call& loop, size_t stacked);

/// Types of the body's inputs, where those that may change their shapes have the sizes that the body names.
std::vector<Type> body_inputs(const Call& loop, const Body& body);

}  // namespace hetnn::ops
