// Building right sides of rules.
#include "hetnn/passes/rule.h"

#include <algorithm>

#include "hetnn/base/sizes.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes {

ir::Value* Build::op(std::string_view name, std::vector<ir::Value*> inputs, ops::Attrs attrs) {
  // What stands for a node rounds its integers as the node did.
  const auto rounding = root_->attrs().find(ops::kQuantRounding);
  if (rounding != root_->attrs().end() && attrs.contains(ops::kQuantScale)) attrs.insert(*rounding);
  return rewriter_.add(name, std::move(inputs), std::move(attrs), root_->name() + "." + std::string(name),
                       root_->loc());
}

ir::Value* Build::constant(Tensor value, const std::optional<ops::Quant>& quant) {
  return rewriter_.constant(std::move(value), root_->name() + ".const", quant);
}

ir::Value* Build::constant(DType dtype, std::vector<int64_t> shape, std::span<const double> values) {
  return constant(from_doubles(dtype, std::move(shape), values));
}

ir::Value* Build::like(const ir::Node& like, std::vector<ir::Value*> inputs, const ops::Attrs& changes) {
  ops::Attrs attrs = like.attrs();
  for (const auto& [name, value] : changes) attrs.insert_or_assign(name, value);
  ir::Value* made = rewriter_.add(like.op().name, std::move(inputs), std::move(attrs), like.name(), like.loc());
  likenesses_.emplace_back(made, &like);
  return made;
}

bool Build::affords(DType dtype, std::span<const int64_t> shape) const {
  return !affords_ || affords_(dtype_bytes(dtype) * checked_product(shape, "a constant"));
}

const ir::Node* Build::model_of(const ir::Value* made) const {
  for (const auto& [value, node] : likenesses_) {
    if (value == made) return node;
  }
  return nullptr;
}

ir::Value* Build::reshape(ir::Value* x, const Shape& shape) {
  if (x->shape() == shape) return x;
  const bool is_constant = x->producer() && x->producer()->is_constant();
  const auto& quant = x->type().quant;
  if (is_constant && is_static(shape) && (!quant || quant->per_tensor()))
    return constant(x->producer()->tensor("value").reshaped(evaluate(shape, {})), quant);
  return op("reshape", {x}, {{"shape", shape}});
}

bool all_are(const ir::Node& node, std::string_view attr, int64_t value) {
  const std::vector<Dim>& given = node.integers(attr);
  return std::all_of(given.begin(), given.end(), [&](const Dim& dim) { return dim == Dim(value); });
}

bool has_one_tap(const ir::Node& conv) {
  const Shape& w = conv.input(1)->shape();
  return conv.integer("groups") == Dim(1) && w[2] == Dim(1) && w[3] == Dim(1);
}

bool is_pointwise(const ir::Node& conv) {
  return has_one_tap(conv) && all_are(conv, "stride", 1) && all_are(conv, "padding", 0);
}

namespace {

bool touches_quantized(const ir::Node& node) {
  auto quantized = [](const ir::Value* value) { return value && value->type().quant; };
  return std::any_of(node.inputs().begin(), node.inputs().end(), quantized) ||
         std::any_of(node.outputs().begin(), node.outputs().end(), quantized);
}

}  // namespace

std::optional<Match> match(const Rule& rule, ir::Node* root, const ir::Graph& graph) {
  if (!rule.quantized && touches_quantized(*root)) return std::nullopt;
  std::optional<Match> found = match(rule.pattern, root, graph);
  if (!found) return std::nullopt;
  for (const Guard& guard : rule.guards) {
    if (!guard.holds(*found)) return std::nullopt;
  }
  return found;
}

std::vector<size_t> order_of_axes(const ir::Node& permute) {
  std::vector<size_t> out;
  for (const Dim& axis : permute.integers("perm"))
    out.push_back(static_cast<size_t>(axis.value() < 0 ? axis.value() + permute.input(0)->rank() : axis.value()));
  return out;
}

std::vector<Dim> as_dims(const std::vector<size_t>& order) {
  std::vector<Dim> out;
  out.reserve(order.size());
  for (const size_t axis : order) out.emplace_back(static_cast<int64_t>(axis));
  return out;
}

}  // namespace hetnn::passes
