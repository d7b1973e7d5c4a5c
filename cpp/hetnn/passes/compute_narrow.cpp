// Twins on narrower floats, between casts; a cast back and forth is left out.
#include "hetnn/passes/compute_narrow.h"

#include <algorithm>
#include <map>
#include <variant>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::passes {
namespace {

bool is_f32(const ir::Value* value) { return value && value->dtype() == DType::f32; }

bool has_narrow_form(const ir::Node& node) {
  using ops::Trait;
  const ops::OpDef& op = node.op();
  if (node.is_constant() || op.has(Trait::conversion) || op.has(Trait::control) || op.find_attr("body")) return false;
  const bool says_type =
      std::ranges::any_of(node.attrs(), [](const auto& attr) { return std::holds_alternative<DType>(attr.second); });
  return !says_type && ops::defined_symbols(node.call()).empty() && std::ranges::any_of(node.inputs(), is_f32) &&
         std::ranges::any_of(node.outputs(), is_f32);
}

class Narrower {
 public:
  Narrower(ir::Graph& graph, DType dtype) : rewriter_(graph), dtype_(dtype) {}

  /// False where the operator does not take the type.
  bool replace(ir::Node* node) {
    rewriter_.insert_before(node);
    std::vector<ir::Value*> inputs;
    for (ir::Value* input : node->inputs()) inputs.push_back(is_f32(input) ? narrowed(input) : input);
    ir::Node* twin = nullptr;
    try {
      twin = rewriter_.create(node->op().name, std::move(inputs), node->attrs(), node->name(), node->loc());
    } catch (const InvalidModel&) {
      return false;
    }
    for (size_t k = 0; k < node->outputs().size(); ++k) {
      ir::Value *from = node->output(k), *to = twin->output(k);
      if (to->type() != from->type()) {
        ir::Value* narrow = to;
        to = rewriter_.add("cast", {narrow}, {{"to", DType::f32}}, from->name() + ".wide");
        narrow_[to] = narrow;
      }
      rewriter_.replace_uses(from, to);
    }
    rewriter_.erase(node);
    return true;
  }

 private:
  ir::Value* narrowed(ir::Value* value) {
    ir::Value*& out = narrow_[value];
    if (!out) out = rewriter_.add("cast", {value}, {{"to", dtype_}}, value->name() + ".narrow");
    return out;
  }

  ir::Rewriter rewriter_;
  DType dtype_;
  std::map<const ir::Value*, ir::Value*> narrow_;
};

}  // namespace

size_t compute_narrow(ir::Graph& graph, DType dtype, const std::set<std::string, std::less<>>& kept) {
  std::vector<ir::Node*> nodes;
  for (ir::Node* node : graph.nodes()) {
    if (has_narrow_form(*node) && !kept.contains(node->name())) nodes.push_back(node);
  }
  Narrower narrower(graph, dtype);
  const auto replaced = std::ranges::count_if(nodes, [&](ir::Node* node) { return narrower.replace(node); });
  ir::Rewriter(graph).erase_dead();
  graph.stage = ir::Stage::imported;
  return static_cast<size_t>(replaced);
}

}  // namespace hetnn::passes
