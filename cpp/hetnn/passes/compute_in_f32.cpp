// Conversions around nodes on narrow values.
#include "hetnn/passes/compute_in_f32.h"

#include <algorithm>
#include <map>

#include "hetnn/base/narrow_float.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ops/integers.h"
#include "hetnn/ops/quantized.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::passes {
namespace {

bool is_widened(const ir::Node& node, size_t input, const NarrowArithmetic& arithmetic) {
  const ir::Value* value = node.input(input);
  if (!value || !ops::is_narrow(value->type())) return false;
  return value->type().quant || !arithmetic.reads || !arithmetic.reads(node, input);
}

class Converter {
 public:
  Converter(ir::Graph& graph, const NarrowArithmetic& arithmetic) : rewriter_(graph), arithmetic_(arithmetic) {}

  void replace(ir::Node* node) {
    std::vector<ir::Value*> inputs;
    for (size_t k = 0; k < node->inputs().size(); ++k)
      inputs.push_back(is_widened(*node, k, arithmetic_) ? widened(node->input(k)) : node->input(k));
    ops::Attrs attrs = node->attrs();
    for (std::string_view name : ops::kQuantAttrs) attrs.erase(std::string(name));
    for (auto& [name, attr] : attrs) {
      const DType* dtype = std::get_if<DType>(&attr);
      if (dtype && is_narrow_float(*dtype)) attr = DType::f32;
    }
    rewriter_.insert_before(node);
    ir::Node* twin =
        rewriter_.create(node->op().name, std::move(inputs), std::move(attrs), node->name() + ".f32", node->loc());
    for (size_t k = 0; k < node->outputs().size(); ++k) {
      ir::Value* result = narrowed(twin->output(k), node->output(k)->type());
      rewriter_.replace_uses(node->output(k), result);
      rewriter_.rename(result, std::string(node->output(k)->name()));
    }
    for (ir::Node* created : rewriter_.take_created()) {
      created->device = node->device;
      created->subgraph = node->subgraph;
    }
    rewriter_.erase(node);
  }

 private:
  ir::Value* widened(ir::Value* value) {
    auto [at, fresh] = widened_.try_emplace(value, nullptr);
    if (!fresh) return at->second;
    if (value->producer()) {
      rewriter_.insert_after(value->producer());
    } else {
      const auto nodes = rewriter_.graph().nodes();
      rewriter_.insert_before(nodes.size() > 0 ? *nodes.begin() : nullptr);
    }
    const std::string name = value->name() + ".wide";
    if (value->producer() && value->producer()->is_constant()) {
      at->second = rewriter_.constant(ops::widen(value->producer()->tensor("value"), value->type()), name);
    } else if (value->type().quant) {
      at->second = rewriter_.add("dequantize", {value}, {}, name);
    } else {
      at->second = rewriter_.add("cast", {value}, {{"to", DType::f32}}, name);
    }
    return at->second;
  }

  ir::Value* narrowed(ir::Value* wide, const ops::Type& type) {
    if (!ops::is_narrow(type)) return wide;
    if (type.quant) return rewriter_.add("quantize", {wide}, ops::quantize_attrs(type), wide->name() + ".narrow");
    return rewriter_.add("cast", {wide}, {{"to", type.dtype}}, wide->name() + ".narrow");
  }

  ir::Rewriter rewriter_;
  const NarrowArithmetic& arithmetic_;
  std::map<const ir::Value*, ir::Value*> widened_;
};

// Integers handed on as they are, of one scale and zero point.
bool moves_integers(const ir::Node& node) {
  switch (node.op().primitive) {
    case ops::Primitive::concat:
    case ops::Primitive::slice:
    case ops::Primitive::rearrange:
      break;
    default:
      return false;
  }
  const auto& quant = node.output()->type().quant;
  return quant && std::ranges::all_of(node.inputs(), [&](const ir::Value* input) {
           return input && input->dtype() == node.output()->dtype() && input->type().quant == quant;
         });
}

}  // namespace

bool stays_narrow(const ir::Node& node) {
  // By its meaning: what is converted behind it would need a size that its own subgraph finds.
  if (!ops::defined_symbols(node.call()).empty()) return true;
  if (node.op().find_attr("body")) return true;  // whose calls give what types they give
  if (node.op().name == ops::kIdentity) return node.input(0)->type() == node.output()->type();  // else it rescales
  if (node.op().has(ops::Trait::integral) || moves_integers(node)) return true;
  if (node.attrs().contains(ops::kQuantRounding) && ops::integer_rounding(node.call())) return true;
  // Its kernel and its meaning round as they go.
  if (node.op().name == "nary") return is_narrow_float(node.output()->dtype()) && node.string("op") == "add";
  if (!node.op().has(ops::Trait::conversion)) return false;
  return node.input(0)->dtype() == DType::f32 || node.output()->dtype() == DType::f32;
}

bool needs_f32(const ir::Node& node, const NarrowArithmetic& arithmetic) {
  if (node.is_constant() || !ops::has_narrow(node.call()) || stays_narrow(node)) return false;
  const auto is_narrow = [](const ir::Value* output) { return ops::is_narrow(output->type()); };
  bool converts = std::ranges::any_of(node.outputs(), is_narrow);
  for (size_t k = 0; k < node.inputs().size(); ++k) converts = converts || is_widened(node, k, arithmetic);
  return converts && !arithmetic.computes(node);
}

size_t compute_in_f32(ir::Graph& graph, const NarrowArithmetic& arithmetic) {
  Converter converter(graph, arithmetic);
  std::vector<ir::Node*> narrow;
  for (ir::Node* node : graph.nodes()) {
    if (needs_f32(*node, arithmetic)) narrow.push_back(node);
  }
  for (ir::Node* node : narrow) converter.replace(node);
  if (!narrow.empty()) ir::Rewriter(graph).erase_dead();
  return narrow.size();
}

}  // namespace hetnn::passes
