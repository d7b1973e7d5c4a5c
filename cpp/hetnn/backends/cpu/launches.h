// From fused nodes to launches over values, with a layout for every value.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetnn/base/layout.h"
#include "hetnn/ir/graph.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/query/machine.h"
#include "hetnn/ops/meaning.h"

namespace hetnn::backends::cpu {

/// How a value lies in memory. `pitch` counts elements between pixels (nhwc only), `strides` those along each axis
/// (strided only).
struct ValueLayout {
  Layout layout = Layout::plain;
  Dim pitch = 0;
  Shape strides = {};
};
using Layouts = std::map<const ir::Value*, ValueLayout>;

/// A node fused behind another; `operand` is the position among the launch's inputs of the first of the `operands`
/// values that it reads besides the running value, -1 where it reads nothing else.
struct LaunchStep {
  const ir::Node* node;
  kernels::Step step;
  int operand = -1;
  int operands = 0;
};

/// What one command computes: a node, and elementwise nodes on its result.
struct Launch {
  const ir::Node* anchor;
  const kernels::Variant* variant = nullptr;  // null: the operator's meaning
  std::vector<const ir::Value*> inputs;       // the anchor's (absent ones null), then the operands of the steps
  std::vector<const ir::Value*> outputs;
  std::vector<LaunchStep> steps = {};
  // Constants of one value or one a channel, with the shape in which a step takes them.
  std::map<size_t, Shape> operand_shapes = {};

  bool is_operand(size_t input) const {
    const int at = static_cast<int>(input);
    return std::ranges::any_of(
        steps, [&](const LaunchStep& step) { return step.operand <= at && at < step.operand + step.operands; });
  }
  kernels::LayoutWish layout_wish() const { return variant ? variant->layout : kernels::LayoutWish::plain; }
};

/// A launch with a value for every symbol: what kernels are asked with. Operands of steps lie as the result does, and
/// the result has the type that the first node computes, whatever the steps convert it to.
struct ConcreteLaunch {
  ConcreteLaunch(const Launch& launch, const Layouts& layouts, const Bindings& bindings);
  kernels::KernelCall call() const { return {inputs, outputs, params, steps}; }
  /// Position among the kernel's inputs, which leave absent ones out, of the launch's input `index`.
  int position(size_t index) const { return positions[index]; }

  ops::BoundCall bound;
  std::vector<kernels::TensorView> inputs, outputs;
  std::vector<int> positions;
  kernels::Params params;
  std::vector<kernels::Step> steps;
};

/// The variant that computes the node alone under `bindings`, or null where only its meaning does: the best of those
/// that serve it. `steps`: behind it, without operands.
const kernels::Variant* variant_for(const ir::Node& node, const Bindings& bindings,
                                    std::vector<kernels::Step> steps = {});
/// The variant of a launch whose values lie as they will: of those that want channels last the best that serves, null
/// where none does. The others were chosen for plain memory, which they are given.
const kernels::Variant* settled(const Launch& launch, ConcreteLaunch& concrete, const kernels::Machine& machine);

/// The variant of a node, and its call as it would lie among others: what an input of the graph gives lies plain.
struct Chosen {
  const kernels::Variant* variant;
  std::unique_ptr<ConcreteLaunch> concrete;
};
/// Nothing where only its meaning computes it.
std::optional<Chosen> chosen_among_others(const ir::Node& node, const Bindings& bindings,
                                          const kernels::Machine& machine);

/// Whether the node's variant computes with its values of f16 or bf16 in less time than f32 takes.
bool computes_halves(const ir::Node& node, const Bindings& bindings);

/// Whether a node is a step behind such a one, or behind a sum that is.
bool bounds_halves(const ir::Node& node, const Bindings& bindings);

/// Whether `follower`, which reads the result of the chain `launch`, can be a step of the kernel of its first node.
bool can_follow(std::span<const ir::Node* const> launch, const ir::Node& follower, const Bindings& bindings);

/// The launches of a fused graph, in the order of their last nodes; without variants each by its meaning. InternalError
/// when one is no chain of steps.
std::vector<Launch> launches_of(const ir::Graph& graph, bool variants);

/// Layouts for every value that `launches` touch. Those of `fixed` (the graph's inputs and outputs) stay as they are.
/// What kernels would only move, with values for the symbols, lies with its pixels as far apart as where it comes from
/// or goes to.
Layouts choose_layouts(const std::vector<Launch>& launches, const Layouts& fixed, const Bindings& hints);

bool is_constant(const ir::Value& value);

/// How a step behind channels-last results takes a plain value of their shape: a constant dense, since it is turned
/// when compiling, others as channels_last.
ValueLayout turned_layout(const ir::Value& value);

/// Dense nhwc with the channel pitch padded to whole vectors, and no multiple of 2048 bytes: every pixel, or every
/// other one, would fall into one place of the first-level cache.
ValueLayout channels_last(const ir::Value& value);

}  // namespace hetnn::backends::cpu
