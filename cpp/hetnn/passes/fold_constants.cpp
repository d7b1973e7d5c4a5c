// Constant folding by the reference meanings of operators.
#include "hetnn/passes/fold_constants.h"

#include <algorithm>

#include "hetnn/base/interrupt.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ops/quantized.h"

namespace hetnn::passes {
namespace {

// Whether integers of a constant become the reals that they stand for.
bool dequantizes(const ir::Node& node) {
  const ir::Value* x = node.input(0);
  if (!x) return false;
  if (x->type().quant) return !node.output()->type().quant;
  return node.op().has(ops::Trait::conversion) && node.inputs().size() > 1 && is_float(node.output()->dtype());
}

bool is_foldable(const ir::Node& node, const FoldConstantsOptions& options) {
  if (node.is_constant() || !node.op().meaning) return false;
  if (!options.dequantized && dequantizes(node)) return false;
  int64_t in_bytes = 0, out_bytes = 0;
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    if (!node.input(k)) continue;
    const Tensor* constant = node.constant_input(k);
    if (!constant) return false;
    in_bytes += constant->bytes();
  }
  std::set<std::string> symbols;
  ops::collect_symbols(node.call(), symbols);
  if (!symbols.empty()) return false;
  for (const ir::Value* output : node.outputs()) {
    out_bytes += elements(output->shape()).value() * dtype_bytes(output->dtype());
  }
  return out_bytes <= std::max(options.max_bytes, in_bytes);
}

bool writes_output(const ir::Graph& graph, const ir::Node& node) {
  return std::any_of(node.outputs().begin(), node.outputs().end(),
                     [&](const ir::Value* output) { return graph.is_output(output); });
}

std::vector<Tensor> evaluate_constant(const ir::Node& node, const Bindings& bindings) {
  std::vector<std::optional<Tensor>> inputs;
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    const Tensor* constant = node.constant_input(k);
    inputs.push_back(constant ? std::optional<Tensor>(*constant) : std::nullopt);
  }
  return ops::evaluate(node.call(), inputs, bindings);
}

}  // namespace

size_t fold_constants(ir::Graph& graph, const FoldConstantsOptions& options) {
  ir::Rewriter rewriter(graph);
  const Bindings bindings;
  size_t folded = 0;
  const ir::Graph::Nodes nodes = graph.nodes();
  for (auto at = nodes.begin(); at != nodes.end();) {
    ir::Node* node = *at;
    ++at;
    check_interrupt();
    if (!is_foldable(*node, options) || (!options.outputs && writes_output(graph, *node))) continue;
    std::vector<Tensor> results;
    try {
      results = evaluate_constant(*node, bindings);
    } catch (const Unsupported&) {
      continue;  // an element type that the reference has no arithmetic for
    }
    rewriter.insert_before(node);
    for (size_t k = 0; k < results.size(); ++k) {
      ir::Value* constant = rewriter.constant(std::move(results[k]), "const", node->output(k)->type().quant);
      rewriter.replace_uses(node->output(k), constant);
      rewriter.rename(constant, std::string(node->output(k)->name()));
    }
    rewriter.erase(node);
    ++folded;
  }
  if (folded > 0) rewriter.erase_dead();
  return folded;
}

}  // namespace hetnn::passes
