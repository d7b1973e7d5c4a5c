// Short ways to say which CPU kernel computes an operator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

using KernelChoice = std::function<KernelUse(const Call&)>;

/// The kernel `unary` with operation `op`; `values` are attributes of the node (reals) that become its constants.
KernelChoice unary_kernel(std::string op, std::vector<std::string> values = {});
/// The kernel `binary` with operation `op`; as a step: `step` and the other operand, where one is given.
KernelChoice binary_kernel(std::string op, std::string step = {});
/// A kernel that takes the node's attributes of these names as its parameters, under the same names.
KernelChoice named_kernel(std::string kernel, std::vector<std::string> attrs,
                          KernelUse::Layout layout = KernelUse::Layout::same, bool takes_steps = false);

/// The kernel `reduce` with operation `op` over the node's axes.
KernelChoice reduce_kernel(std::string op);

/// An attribute as a kernel's parameter: booleans become 0 and 1.
KernelUse::Param as_param(const Attr& attr);

}  // namespace hetnn::ops
