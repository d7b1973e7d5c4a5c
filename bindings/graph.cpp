// _core.Graph and _core.GraphBuilder: the intermediate representation in Python's hands.
#include "hetnn/ir/graph.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <map>
#include <memory>

#include "bindings/arrays.h"
#include "bindings/attributes.h"
#include "bindings/dims.h"
#include "hetnn/base/error.h"
#include "hetnn/base/progress.h"
#include "hetnn/ir/interpret.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"
#include "hetnn/passes/differentiate.h"

namespace py = pybind11;

namespace hetnn {
namespace {

Shape shape_of(const py::handle& object) {
  Shape out;
  for (const py::handle& item : object) out.push_back(dim_of(item));
  return out;
}

py::typing::List<Size> sizes_of(const Shape& shape) {
  py::typing::List<Size> out;
  for (const Dim& dim : shape) out.append(size_of(dim));
  return out;
}

DType dtype_of(const std::string& name) {
  const auto found = dtype_from_name(name);
  if (!found) throw InvalidModel(text("there is no element type '", name, "'."));
  return *found;
}

// A Python value as the kind of attribute that the operator declares.
ops::Attr attr_of(const ops::OpDef& op, const std::string& name, const py::handle& value) {
  const ops::AttrDef* def = op.find_attr(name);
  if (!def) throw InvalidModel(text(op.name, " has no attribute '", name, "'."));
  try {
    switch (def->kind) {
      case ops::AttrKind::boolean:
        return value.cast<bool>();
      case ops::AttrKind::integer:
        return dim_of(value);
      case ops::AttrKind::real:
        return value.cast<double>();
      case ops::AttrKind::string:
        return value.cast<std::string>();
      case ops::AttrKind::dtype:
        return dtype_of(value.cast<std::string>());
      case ops::AttrKind::integers:
        return PyIndex_Check(value.ptr()) || py::isinstance<py::str>(value) ? std::vector<Dim>{dim_of(value)}
                                                                            : shape_of(value);
      case ops::AttrKind::reals:
        return value.cast<std::vector<double>>();
      case ops::AttrKind::tensor:
        return tensor_of(value.cast<py::array>());
    }
  } catch (const py::cast_error&) {
  }
  throw InvalidModel(text(op.name, ": attribute '", name, "' is of kind ", attr_kind_name(def->kind), "; got ",
                          py::repr(value).cast<std::string>().substr(0, 80), "."));
}

// Builds one graph; values are handed out as handles that the builder keeps alive.
class GraphBuilder {
 public:
  explicit GraphBuilder(const std::string& name) : graph_(std::make_shared<ir::Graph>(name)), rewriter_(*graph_) {}

  void add_symbol(const std::string& name, int64_t min, int64_t max, int64_t hint) {
    graph_->symbols.push_back({name, min, max, hint});
  }
  ir::Value* add_input(const std::string& name, const std::string& dtype, const py::sequence& shape) {
    return rewriter_.add_input(name, {dtype_of(dtype), shape_of(shape)});
  }
  ir::Value* constant(const py::array& array, const std::string& name) {
    return rewriter_.constant(tensor_of(array), name);
  }
  std::vector<ir::Value*> create(const std::string& op, std::vector<ir::Value*> inputs, const py::dict& attrs,
                                 const std::string& name, const std::string& scope, const std::string& file, int line) {
    const ops::OpDef& def = ops::OpTable::global().get(op);
    ops::Attrs read;
    for (const auto& [key, value] : attrs) {
      const auto attr = key.cast<std::string>();
      read[attr] = attr_of(def, attr, value);
    }
    return rewriter_.create(op, std::move(inputs), std::move(read), name, {scope, file, line})->outputs();
  }
  std::vector<ir::Value*> differentiate(ir::Value* y, const std::vector<ir::Value*>& xs) {
    return passes::differentiate(rewriter_, y, xs);
  }
  // Nodes, symbols and states of another graph; its inputs and constants of these names are values of this one.
  std::vector<ir::Value*> include(const ir::Graph& graph, const std::map<std::string, ir::Value*>& given) {
    for (const Symbol& symbol : graph.symbols)
      if (std::ranges::find(graph_->symbols, symbol.name, &Symbol::name) == graph_->symbols.end())
        graph_->symbols.push_back(symbol);
    std::map<const ir::Value*, ir::Value*> twin;
    for (const ir::Value* input : graph.inputs()) {
      const auto known = given.find(input->name());
      twin[input] = known != given.end() ? known->second : rewriter_.add_input(input->name(), input->type());
    }
    for (const ir::Node* node : graph.nodes()) {
      const auto known = given.find(node->name());
      if (node->is_constant() && known != given.end()) {
        twin[node->output()] = known->second;
        continue;
      }
      std::vector<ir::Value*> inputs;
      for (const ir::Value* input : node->inputs()) inputs.push_back(input ? twin.at(input) : nullptr);
      ir::Node* made = rewriter_.create(node->op().name, std::move(inputs), node->attrs(), node->name(), node->loc());
      made->aliases = node->aliases;
      for (size_t k = 0; k < node->outputs().size(); ++k) twin[node->output(k)] = made->output(k);
    }
    std::vector<ir::Value*> out;
    for (size_t k = 0; k < graph.outputs().size(); ++k) {
      const std::string& name = graph.output_names[k];
      const auto state = std::ranges::find(graph.mutations, name, &ir::Mutation::output);
      if (state == graph.mutations.end()) {
        out.push_back(twin.at(graph.outputs()[k]));
      } else {
        rewriter_.add_output(twin.at(graph.outputs()[k]), name);
        graph_->mutations.push_back(*state);
      }
    }
    return out;
  }
  void output(ir::Value* value, const std::string& name) { rewriter_.add_output(value, name); }
  void mutation(const std::string& input, const std::string& output, const py::array& initial) {
    graph_->mutations.push_back({input, output, tensor_of(initial)});
  }
  std::shared_ptr<ir::Graph> finish() {
    rewriter_.erase_dead();
    ir::raise_hints(*graph_);
    ir::verify(*graph_);
    return graph_;
  }

 private:
  std::shared_ptr<ir::Graph> graph_;
  ir::Rewriter rewriter_;
};

py::list typed_values(const std::vector<ir::Value*>& values) {
  py::list out;
  for (const ir::Value* value : values)
    out.append(py::make_tuple(value->name(), std::string(dtype_name(value->dtype())),
                              AsPython{AsPython::Sizes::texts}(value->shape())));
  return out;
}

py::list node_rows(const ir::Graph& graph) {
  py::list out;
  for (const ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    py::list inputs, outputs, input_types, output_types;
    for (const ir::Value* input : node->inputs()) {
      inputs.append(input ? py::object(py::str(input->name())) : py::none());
      input_types.append(input ? py::object(dict_of(input->type())) : py::none());
    }
    for (const ir::Value* output : node->outputs()) {
      outputs.append(output->name());
      output_types.append(dict_of(output->type()));
    }
    py::dict row;
    row["name"] = node->name();
    row["op"] = std::string(node->op().name);
    row["inputs"] = inputs;
    row["outputs"] = outputs;
    row["attrs"] = attrs_of(node->attrs());
    row["input_types"] = input_types;
    row["output_types"] = output_types;
    row["type"] = ops::to_string(node->output()->type());
    row["device"] = node->device;
    row["subgraph"] = node->subgraph;
    row["loc"] = ops::to_string(node->loc());
    row["module"] = node->loc().scope;
    out.append(row);
  }
  return out;
}

py::dict types_of(const ir::Graph& graph) {
  py::dict out;
  const auto add = [&](const std::vector<ir::Value*>& values) {
    for (const ir::Value* value : values) out[py::str(value->name())] = dict_of(value->type());
  };
  add(graph.inputs());
  for (const ir::Node* node : graph.nodes()) add(node->outputs());
  return out;
}

py::dict constants_of(const ir::Graph& graph) {
  py::dict out;
  for (const ir::Node* node : graph.nodes()) {
    if (node->is_constant()) out[py::str(node->output()->name())] = view_of(node->tensor("value"));
  }
  return out;
}

}  // namespace

void bind_graph(py::module_& m) {
  py::class_<ir::Value, std::unique_ptr<ir::Value, py::nodelete>>(m, "Value", "A value of a graph under construction.")
      .def_property_readonly("name", [](const ir::Value& v) { return v.name(); })
      .def_property_readonly("dtype", [](const ir::Value& v) { return std::string(dtype_name(v.dtype())); })
      .def_property_readonly(
          "shape", [](const ir::Value& v) { return sizes_of(v.shape()); },
          "An int for each size that is known, a Dim for each that depends on symbols.")
      .def_property_readonly(
          "constant",
          [](const ir::Value& v) -> py::object {
            return v.producer() && v.producer()->is_constant() ? py::object(array_of(v.producer()->tensor("value")))
                                                               : py::none();
          },
          "The array of a constant, else None.");

  py::class_<ir::Graph, std::shared_ptr<ir::Graph>>(m, "Graph", "A model in hetnn's intermediate representation.")
      .def_static(
          "parse", [](const std::string& source) { return std::make_shared<ir::Graph>(ir::parse(source)); },
          py::arg("source"), "Reads the text form. InvalidModel with line and column.")
      .def(
          "print",
          [](const ir::Graph& g, bool constants, bool locations) {
            return ir::print(g, {constants, locations});
          },
          py::arg("constants") = true, py::arg("locations") = true,
          "The text form; without constants it is for reading only.")
      .def("verify", &ir::verify, "Checks the rules of the graph's stage. InternalError names the broken one.")
      .def(
          "clone", [](const ir::Graph& g) { return std::make_shared<ir::Graph>(g.clone()); }, "A deep copy.")
      .def_property_readonly("name", [](const ir::Graph& g) { return g.name(); })
      .def_property_readonly("stage", [](const ir::Graph& g) { return std::string(ir::stage_name(g.stage)); })
      .def_property_readonly(
          "inputs", [](const ir::Graph& g) { return typed_values(g.inputs()); }, "(name, dtype, shape) of every input.")
      .def_property_readonly(
          "outputs", [](const ir::Graph& g) { return typed_values(g.outputs()); },
          "(name, dtype, shape) of every output.")
      .def_property_readonly("output_names", [](const ir::Graph& g) { return g.output_names; })
      .def_property_readonly(
          "symbols",
          [](const ir::Graph& g) {
            py::list out;
            for (const Symbol& s : g.symbols) out.append(py::make_tuple(s.name, s.min, s.max, s.hint));
            return out;
          },
          "(name, min, max, hint) of every symbol.")
      .def_property_readonly(
          "mutations",
          [](const ir::Graph& g) {
            py::list out;
            for (const ir::Mutation& mutation : g.mutations)
              out.append(py::make_tuple(mutation.input, mutation.output));
            return out;
          },
          "(input, output) of every value the model updates.")
      .def("nodes", &node_rows,
           "Every node but constants, as dicts: among them its attributes, and the types of its inputs (None: absent) "
           "and outputs as `types` has them.")
      .def("types", &types_of,
           "The type of every value by its name: dtype, shape, and quant, None or scales, zero_points and axis.")
      .def("constants", &constants_of, "The arrays of all constants by name, read-only and in the graph's own memory.");

  py::class_<GraphBuilder>(m, "GraphBuilder", "Builds a graph node by node.")
      .def(py::init<const std::string&>(), py::arg("name") = "main")
      .def("add_symbol", &GraphBuilder::add_symbol, py::arg("name"), py::arg("min"), py::arg("max"), py::arg("hint"))
      .def("add_input", &GraphBuilder::add_input, py::arg("name"), py::arg("dtype"), py::arg("shape"),
           py::return_value_policy::reference_internal)
      .def("constant", &GraphBuilder::constant, py::arg("array"), py::arg("name") = "",
           py::return_value_policy::reference_internal,
           "A constant that shares the array's memory when it is contiguous.")
      .def("create", &GraphBuilder::create, py::arg("op"), py::arg("inputs"), py::arg("attrs") = py::dict(),
           py::arg("name") = "", py::arg("scope") = "", py::arg("file") = "", py::arg("line") = 0,
           py::return_value_policy::reference_internal,
           "Adds a node; its outputs. None stands for an absent optional input.")
      .def("differentiate", &GraphBuilder::differentiate, py::arg("y"), py::arg("xs"),
           py::return_value_policy::reference_internal,
           "The derivatives of the sum of y's elements by each of xs, as if the others were given. Unsupported names "
           "all "
           "nodes on the way that have none.")
      .def("include", &GraphBuilder::include, py::arg("graph"), py::arg("given"),
           py::return_value_policy::reference_internal,
           "Adds what another graph computes; its inputs and constants that `given` names are these values. What it "
           "returns, without the next values of its states, which are the builder's.")
      .def("output", &GraphBuilder::output, py::arg("value"), py::arg("name") = "")
      .def("mutation", &GraphBuilder::mutation, py::arg("input"), py::arg("output"), py::arg("initial"),
           "The input is state: a run's output of that name is its next value.")
      .def("finish", &GraphBuilder::finish, "Drops what nobody reads, verifies, and returns the graph.");

  m.def(
      "interpret",
      [](const ir::Graph& graph, const std::vector<py::array>& inputs,
         const std::optional<py::typing::Callable<void(double)>>& tell) {
        std::vector<Tensor> tensors;
        tensors.reserve(inputs.size());
        for (const py::array& array : inputs) tensors.push_back(tensor_of(array));
        std::vector<Tensor> results;
        {
          std::optional<ProgressScope> scope;
          if (tell) {
            scope.emplace([&](std::string_view, double done) {
              const py::gil_scoped_acquire gil;
              (*tell)(done);
            });
          }
          py::gil_scoped_release release;
          results = ir::interpret(graph, tensors);
        }
        py::list out;
        for (const Tensor& tensor : results) out.append(array_of(tensor));
        return out;
      },
      py::arg("graph"), py::arg("inputs"), py::arg("tell") = py::none(),
      "Runs a graph by its operators' reference meanings. `tell` is called now and then with what of it is done, from "
      "0 "
      "to 1.");
}

}  // namespace hetnn
