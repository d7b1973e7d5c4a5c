// _core.extract: a part of a model as a model of its own.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ir/graph.h"
#include "hetnn/plan/cut.h"

namespace py = pybind11;

namespace hetnn {
namespace {

std::shared_ptr<ir::Graph> extract(const ir::Graph& graph, const std::set<std::string>& names) {
  std::vector<ir::Node*> nodes;
  for (ir::Node* node : graph.nodes()) {
    if (!node->is_constant() && names.contains(node->name())) nodes.push_back(node);
  }
  if (nodes.empty()) throw InvalidModel("no node of the graph bears one of these names.");
  auto out = std::make_shared<ir::Graph>(plan::extract(graph, plan::subgraph_of_nodes(graph, "", std::move(nodes))));
  for (ir::Node* node : out->nodes()) {
    node->device.clear();
    node->subgraph = -1;
    node->launch = -1;
  }
  out->stage = ir::Stage::imported;
  return out;
}

}  // namespace

void bind_extract(py::module_& m) {
  m.def("extract", &extract, py::arg("graph"), py::arg("nodes"),
        "A graph of these nodes and the constants that they read: its inputs are what they read from elsewhere, its "
        "outputs what others read of them, in the graph's names. InvalidModel where there is none.");
}

}  // namespace hetnn
