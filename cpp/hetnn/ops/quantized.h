// Values in fewer bits than they are computed in: f16, bf16 and quantized integers, to f32 and back.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::ops {

/// Whether values of this type are computed in f32 and then rounded: f16, bf16, quantized integers.
bool is_narrow(const ir::Type& type);
/// Whether the node reads or writes such a value.
bool has_narrow(const ir::Node& node);

/// The reals that a tensor of a narrow type stands for, as f32; any other tensor as it is.
Tensor widen(const Tensor& tensor, const ir::Type& type);
/// f32 rounded once to a narrow type: to nearest even, integers saturated and NaN as 0.
Tensor narrow(const Tensor& tensor, const ir::Type& type);

/// What a node writes for these inputs (absent ones empty), by its operator's meaning, in f32 where types are narrow.
/// Unsupported when the operator has no reference meaning.
std::vector<Tensor> evaluate(const ir::Node& node, std::span<const std::optional<Tensor>> inputs,
                             const Bindings& bindings);

}  // namespace hetnn::ops
