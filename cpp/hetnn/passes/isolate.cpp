// One node as a graph.
#include "hetnn/passes/isolate.h"

#include <map>

#include "hetnn/ir/rewriter.h"

namespace hetnn::passes {

ir::Graph isolate(const ir::Node& node, const std::vector<Symbol>& symbols) {
  ir::Graph graph("trial");
  graph.symbols = symbols;
  ir::Rewriter rewriter(graph);
  std::map<const ir::Value*, ir::Value*> twin;
  std::vector<ir::Value*> inputs;
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    const ir::Value* input = node.input(k);
    if (!input) {
      inputs.push_back(nullptr);
      continue;
    }
    ir::Value*& copy = twin[input];
    if (!copy) {
      const Tensor* constant = node.constant_input(k);
      copy = constant ? rewriter.constant(*constant, {}, input->type().quant) : rewriter.add_input("x", input->type());
    }
    inputs.push_back(copy);
  }
  ir::Node* made = rewriter.create(node.op().name, std::move(inputs), node.attrs(), node.name(), node.loc());
  for (ir::Value* output : made->outputs()) rewriter.add_output(output);
  return graph;
}

}  // namespace hetnn::passes
