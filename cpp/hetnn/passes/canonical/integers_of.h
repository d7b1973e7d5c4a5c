// What rules for conversions ask of values.
#pragma once

#include "hetnn/ir/graph.h"

namespace hetnn::passes::canonical {

inline const ops::Quant* quant_of(const ir::Value& value) {
  return value.type().quant ? &*value.type().quant : nullptr;
}

/// The integers that a value is the reals of; null where it is something else.
inline ir::Value* integers_of(const ir::Value* value) {
  const ir::Node* producer = value ? value->producer() : nullptr;
  const bool stands = producer && producer->op().name == "dequantize";
  return stands ? producer->input(0) : nullptr;
}

}  // namespace hetnn::passes::canonical
