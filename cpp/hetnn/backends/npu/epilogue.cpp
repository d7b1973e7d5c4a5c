// Chains of nodes as one layer: a product or a sum, an addend, an activation, in that order.
#include "hetnn/backends/npu/epilogue.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

namespace hetnn::backends::npu {

using hetnn::npu::Act;

namespace {

// Products add to what the output held; they and the elementwise operations take an activation. Pools take neither.
bool takes_addend(const ir::Node& node) {
  static const std::set<std::string_view> ops = {"conv2d", "linear", "matmul"};
  return ops.contains(node.op().name);
}
bool takes_activation(const ir::Node& node) {
  static const std::set<std::string_view> ops = {"add", "sub", "mul", "maximum", "minimum"};
  return takes_addend(node) || ops.contains(node.op().name);
}

// What `node` adds to `value`, in the same type; null where it is no such sum. Integers are rescaled and saturated
// before they are added, which products do not do.
const ir::Value* addend_to(const ir::Value& value, const ir::Node& node) {
  if (node.op().name != "add" || value.dtype() == DType::i8) return nullptr;
  const ir::Value* other = node.input(node.input(0) == &value ? 1 : 0);
  return other != &value && other->type() == value.type() ? other : nullptr;
}

}  // namespace

std::optional<Epilogue> activation_of(const ir::Node& node) {
  if (node.op().name == "relu") return Epilogue{.act = Act::relu};
  if (node.op().name != "clamp") return std::nullopt;
  const ir::Type& type = node.output()->type();
  const auto bound = [&](double real) {
    if (!type.quant || type.dtype != DType::i8) return hetnn::npu::float_bits(static_cast<float>(real));
    const double steps =
        std::clamp(std::nearbyint(real / type.quant->scales[0]) + type.quant->zero_point, -128.0, 127.0);
    return int64_t{static_cast<uint32_t>(static_cast<int32_t>(steps))};
  };
  return Epilogue{.act = Act::clamp, .clamp_lo = bound(node.real("min")), .clamp_hi = bound(node.real("max"))};
}

std::optional<Epilogue> epilogue_of(std::span<const ir::Node* const> layer, bool in_order) {
  Epilogue out;
  const ir::Node& anchor = *layer.front();
  const ir::Value* result = anchor.output();
  for (const ir::Node* node : layer.subspan(1)) {
    // Integers leave the engine at one scale.
    if (out.act != Act::none || node->output()->type() != result->type()) return std::nullopt;
    if (const std::optional<Epilogue> activation = activation_of(*node); activation && takes_activation(anchor)) {
      out = {out.addend, activation->act, activation->clamp_lo, activation->clamp_hi};
    } else {
      const ir::Value* addend = addend_to(*result, *node);
      // The sum of an f16 product and an addend is rounded once; by themselves, both are.
      if (!addend || out.addend || !takes_addend(anchor) || (in_order && result->dtype() != DType::f32))
        return std::nullopt;
      out.addend = addend;
    }
    result = node->output();
  }
  return out;
}

}  // namespace hetnn::backends::npu
