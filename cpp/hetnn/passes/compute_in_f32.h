// Pass: nodes on f16, bf16 and quantized values compute in f32 between conversions, where a device is without that
// arithmetic.
#pragma once

#include <functional>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// Whether a node on narrow values needs no twin on any device: conversions to or from f32, operators on the integers
/// themselves, movement that keeps them, and n-ary layers, which convert as they go.
bool stays_narrow(const ir::Node& node);

/// What a device takes of nodes on narrow values that need a twin elsewhere.
struct NarrowArithmetic {
  /// Whether it has the arithmetic of a node.
  std::function<bool(const ir::Node&)> computes;
  /// Whether the twin in f32 reads that input as it is, in f16 or bf16; none: no input.
  std::function<bool(const ir::Node&, size_t input)> reads = nullptr;
};

/// Whether a node gets a twin on such a device.
bool needs_f32(const ir::Node& node, const NarrowArithmetic& arithmetic);

/// Gives every node that reads or writes values of a narrow type (ops/quantized.h) a twin in f32: operands are
/// converted to f32 first (constants now, others by `cast` or `dequantize`, once for all readers), results are rounded
/// by `cast` or `quantize`. Nodes that need none, and what the device takes, stay. Names and types of values stay. The
/// number of nodes replaced.
size_t compute_in_f32(ir::Graph& graph, const NarrowArithmetic& arithmetic);

}  // namespace hetnn::passes
