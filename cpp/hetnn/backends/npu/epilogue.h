// What a layer's instructions do with a result before it is stored, and which nodes that computes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hetnn/ir/graph.h"
#include "hetnn/npu/isa.h"

namespace hetnn::backends::scheduling {

/// y = act(result + addend).
struct Epilogue {
  const ir::Value* addend = nullptr;  // none where null; of floats of the output's type, of i8 of a scale of its own
  const ir::Value* sum = nullptr;     // result + addend, whose scale the output has
  npu::Act act = npu::Act::none;
  int64_t clamp_lo = 0, clamp_hi = 0;  // of clamp, as instructions hold them
};

/// The activation that a node of such an operator is; nothing for all others.
std::optional<Epilogue> activation_of(const ir::Node& node);

/// The epilogue with which the first node's instructions compute a chain of nodes, each reading the one before; nothing
/// where they cannot. With `deterministic` every rounding of the nodes by themselves is kept. Whether the device has
/// the nodes' operators at all was asked when they were placed on it.
std::optional<Epilogue> epilogue_of(std::span<const ir::Node* const> layer, bool deterministic);

}  // namespace hetnn::backends::scheduling
