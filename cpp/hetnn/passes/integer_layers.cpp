// Roles of nodes by their operators' primitives and traits.
#include "hetnn/passes/integer_layers.h"

#include <algorithm>

#include "hetnn/passes/apply_rules.h"
#include "hetnn/passes/legal/rules.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes {

using ops::Primitive;
using ops::Trait;

namespace {
bool is_either(const ir::Node& node) {
  return node.op().has(Trait::elementwise) && node.inputs().size() == 3 && node.input(0)->dtype() == DType::boolean &&
         node.constant_input(1) && node.constant_input(2) && node.output()->type().dtype == DType::f32;
}

bool is_hiding(const ir::Value& value) {
  const ir::Node* from = value.producer();
  if (!from) return false;
  const auto holds = [](const Tensor& tensor) {
    const std::vector<double> numbers = to_doubles(tensor);
    return !numbers.empty() && std::ranges::min(numbers) == kHides && std::ranges::max(numbers) <= 0;
  };
  if (from->is_constant()) return value.dtype() == DType::f32 && holds(from->tensor("value"));
  return is_either(*from) && (holds(*from->constant_input(1)) || holds(*from->constant_input(2)));
}
}  // namespace

void several_to_pairs(ir::Graph& graph) {
  ApplyOptions options;
  options.allow = [](const Rule& rule, const Match&) { return rule.name == "several_as_pairs"; };
  apply_rules(graph, {&legal::arithmetic()}, options);
}

bool is_transposed(const ir::Node& node) { return node.op().name == "conv_transpose2d"; }

bool computes(const ir::Node& node) {
  const ops::OpDef& op = node.op();
  if (node.is_constant() || op.has(Trait::conversion) || op.has(Trait::control)) return false;
  // Also with slopes, a constant a channel.
  const bool of_one_value = op.has(Trait::elementwise) && (node.inputs().size() == 1 || op.has(Trait::channelwise));
  return op.primitive != Primitive::none || of_one_value || is_transposed(node);
}

bool bounds(const ir::Node& node) {
  return node.op().primitive == Primitive::relu || node.op().primitive == Primitive::clamp;
}

bool moves(const ir::Node& node) {
  const bool moved = node.op().has(Trait::movement) && node.inputs().size() == 1;
  return moved || node.op().primitive == Primitive::largest_pool;
}

bool has_bias(const ir::Node& node) {
  return (node.op().primitive == Primitive::convolution || is_transposed(node)) && node.inputs().size() == 3 &&
         node.input(2);
}

size_t operands_of(const ir::Node& node) {
  if (node.op().primitive == Primitive::normalize) return 1;
  return node.inputs().size() - (has_bias(node) ? 1 : 0);
}

std::string_view role_name(Role role) {
  constexpr std::string_view kNames[] = {"weights", "product", "several", "function", "rectify", "bound",
                                         "moves",   "pool",    "joins",   "rows",     "either",  "hides"};
  return kNames[static_cast<size_t>(role)];
}

std::optional<Role> role_of(const ir::Node& node) {
  const auto is_real = [](const ir::Value* value) {
    return !value || value->type() == ops::Type{DType::f32, value->shape()};
  };
  if (node.inputs().empty() || node.outputs().size() != 1 || !is_real(node.output())) return {};
  if (is_either(node)) return Role::either;
  if (!std::ranges::all_of(node.inputs(), is_real)) return {};
  if (node.op().primitive == Primitive::add && node.inputs().size() == 2 &&
      std::ranges::any_of(node.inputs(), [](const ir::Value* value) { return is_hiding(*value); }))
    return Role::hides;
  if (bounds(node)) return node.op().primitive == Primitive::relu ? Role::rectify : Role::bound;
  if (moves(node)) return node.op().primitive == Primitive::largest_pool ? Role::pool : Role::moves;
  if (!computes(node) || is_transposed(node)) return {};
  switch (node.op().primitive) {
    case Primitive::convolution: {
      const bool fixed = node.constant_input(1) && (!has_bias(node) || node.constant_input(2));
      return fixed && !node.constant_input(0) ? std::optional(Role::weights) : std::nullopt;
    }
    case Primitive::product:
      return Role::product;
    case Primitive::concat:
      return Role::joins;
    case Primitive::softmax:
    case Primitive::normalize:
      for (size_t k = 1; k < node.inputs().size(); ++k) {
        if (node.input(k) && !node.constant_input(k)) return {};
      }
      return Role::rows;
    case Primitive::none:
      for (size_t k = 1; k < node.inputs().size(); ++k) {
        if (!node.constant_input(k)) return {};
      }
      return Role::function;
    default:
      return Role::several;
  }
}

}  // namespace hetnn::passes
