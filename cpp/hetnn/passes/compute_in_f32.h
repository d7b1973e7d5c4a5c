// Pass: nodes on f16, bf16 and quantized values compute in f32 between conversions, where a device is without that
// arithmetic.
#pragma once

#include <functional>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// Whether a node on narrow values needs no twin on any device: conversions to or from f32, operators on the integers
/// themselves, movement that keeps them, and n-ary layers, which convert as they go.
bool stays_narrow(const ir::Node& node);

/// Whether a device has the arithmetic of a node on narrow values that needs a twin elsewhere.
using ComputesNarrow = std::function<bool(const ir::Node&)>;

/// Gives every node that reads or writes values of a narrow type (ops/quantized.h) a twin in f32: operands are
/// converted to f32 first (constants now, others by `cast` or `dequantize`, once for all readers), results are rounded
/// by `cast` or `quantize`. Nodes that need none, and those that `computes` takes, stay. Names and types of values
/// stay. The number of nodes replaced.
size_t compute_in_f32(ir::Graph& graph, const ComputesNarrow& computes);

}  // namespace hetnn::passes
