// From fused groups of nodes to kernel calls over values, with a layout for every value.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "hetnn/base/layout.h"
#include "hetnn/ir/graph.h"

namespace hetnn::backends::cpu {

/// How a value lies in memory. `pitch` counts elements between pixels (nhwc only).
struct ValueLayout {
  Layout layout = Layout::plain;
  Dim pitch = 0;
};
using Layouts = std::map<const ir::Value*, ValueLayout>;

/// One kernel launch: a group's anchor with the group's other nodes as steps of its epilogue.
struct Call {
  std::string kernel;
  std::map<std::string, ops::KernelUse::Param, std::less<>> params;
  std::vector<const ir::Value*> inputs;  // anchor's present inputs, then the operands of the steps
  std::vector<const ir::Value*> outputs;
  const ir::Node* anchor;
  // Constants of one value or one a channel, with the shape in which a step takes them.
  std::map<size_t, Shape> operand_shapes = {};
};

/// Whether `follower`, which reads the result of the chain `launch`, can be a step of the kernel of its first node.
bool can_follow(std::span<const ir::Node* const> launch, const ir::Node& follower);

/// The step of `follower` on `main`, with its operand numbered `operand`; empty when it has none in this position.
std::string step_text(const ir::Node& follower, const ir::Value& main, int operand);

/// Calls for the groups of a fused graph, in node order. InternalError when a group is no chain of steps.
std::vector<Call> calls_of(const ir::Graph& graph);

/// Layouts for every value that `calls` touch. Those of `fixed` (the graph's inputs and outputs) stay as they are.
Layouts choose_layouts(const std::vector<Call>& calls, const Layouts& fixed);

/// Dense nhwc with the channel pitch padded to whole vectors, and no multiple of 4096 bytes.
ValueLayout channels_last(const ir::Value& value);

}  // namespace hetnn::backends::cpu
