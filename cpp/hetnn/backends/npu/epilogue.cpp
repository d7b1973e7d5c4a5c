// Chains of nodes as one layer: a product or a sum, an addend, an activation, in that order.
#include "hetnn/backends/npu/epilogue.h"

#include <algorithm>
#include <cmath>

namespace hetnn::backends::scheduling {

using npu::Act;

namespace {

// What an operator is to an epilogue. Products add to what the output held; they and the elementwise operations take an
// activation. Pools and all others take neither.
struct Role {
  bool takes_addend = false;
  bool takes_activation = false;
  bool is_sum = false;
  Act act = Act::none;
};

Role role_of(const ir::Node& node) {
  using ops::Primitive;
  switch (node.op().primitive) {
    case Primitive::convolution:
    case Primitive::product:
      return {.takes_addend = true, .takes_activation = true};
    case Primitive::add:
      return {.takes_activation = true, .is_sum = true};
    case Primitive::subtract:
    case Primitive::multiply:
    case Primitive::maximum:
    case Primitive::minimum:
      return {.takes_activation = true};
    case Primitive::relu:
      return {.act = Act::relu};
    case Primitive::clamp:
      return {.act = Act::clamp};
    default:
      return {};
  }
}

// What `node` adds to `value`; null where it is no such sum, or of other types than the engine adds. Integers have a
// scale each.
const ir::Value* addend_to(const ir::Value& value, const ir::Node& node, const ir::Node& anchor) {
  if (!role_of(node).is_sum) return nullptr;
  const ir::Value* other = node.input(node.input(0) == &value ? 1 : 0);
  if (other == &value) return nullptr;
  if (value.dtype() != DType::i8)
    return other->type() == value.type() && node.output()->type() == value.type() ? other : nullptr;
  const auto quantized = [&](const ir::Value& each) {
    return each.dtype() == DType::i8 && each.type().quant && each.shape() == value.shape();
  };
  // One instruction rounds one way.
  const auto stated = [](const ir::Node& each) {
    const auto at = each.attrs().find(ops::kQuantRounding);
    return at == each.attrs().end() ? std::string() : std::get<std::string>(at->second);
  };
  const bool convolution = anchor.op().primitive == ops::Primitive::convolution && stated(anchor) == stated(node);
  return convolution && quantized(*other) && quantized(*node.output()) ? other : nullptr;
}

}  // namespace

std::optional<Epilogue> activation_of(const ir::Node& node) {
  const Act act = role_of(node).act;
  if (act == Act::none) return std::nullopt;
  if (act == Act::relu) return Epilogue{.act = act};
  const ops::Type& type = node.output()->type();
  const auto bound = [&](double real) {
    if (!type.quant || type.dtype != DType::i8) return npu::float_bits(static_cast<float>(real));
    const double steps =
        std::clamp(std::nearbyint(real / type.quant->scale()) + type.quant->zero_point(), -128.0, 127.0);
    return int64_t{static_cast<uint32_t>(static_cast<int32_t>(steps))};
  };
  return Epilogue{.act = act, .clamp_lo = bound(node.real("min")), .clamp_hi = bound(node.real("max"))};
}

std::optional<Epilogue> epilogue_of(std::span<const ir::Node* const> layer, bool deterministic) {
  Epilogue out;
  const ir::Node& anchor = *layer.front();
  const Role role = role_of(anchor);
  const ir::Value* result = anchor.output();
  for (const ir::Node* node : layer.subspan(1)) {
    if (out.act != Act::none) return std::nullopt;
    if (const std::optional<Epilogue> activation = activation_of(*node); activation && role.takes_activation) {
      // Integers leave the engine at one scale.
      if (node->output()->type() != result->type()) return std::nullopt;
      out = {out.addend, out.sum, activation->act, activation->clamp_lo, activation->clamp_hi};
    } else {
      const ir::Value* addend = addend_to(*result, *node, anchor);
      // The sum of an f16 product and an addend is rounded once; by themselves, both are.
      if (!addend || out.addend || !role.takes_addend || (deterministic && result->dtype() == DType::f16))
        return std::nullopt;
      out.addend = addend;
      out.sum = node->output();
    }
    result = node->output();
  }
  return out;
}

}  // namespace hetnn::backends::scheduling
