// What quantizing in Python asks of graphs: roles of nodes, values as further outputs, conversions around layers.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "bindings/arrays.h"
#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/verify.h"
#include "hetnn/ir/with_outputs.h"
#include "hetnn/passes/attention.h"
#include "hetnn/passes/canonicalize.h"
#include "hetnn/passes/compute_narrow.h"
#include "hetnn/passes/fold_constants.h"
#include "hetnn/passes/insert_conversions.h"
#include "hetnn/passes/integer_layers.h"
#include "hetnn/passes/transposed.h"

namespace py = pybind11;

namespace hetnn {
namespace {

// The integers' type, scales, zero point, and factors before and behind them.
using Conversion =
    std::tuple<std::string, std::vector<double>, int32_t, std::optional<py::array>, std::optional<py::array>>;
// Layer, input, what it becomes, scales of its integers, scales of its blocks of codes and how many codes are one.
using Constant = std::tuple<std::string, size_t, py::array, std::optional<std::vector<double>>,
                            std::optional<std::pair<py::array, int64_t>>>;

py::list roles(const ir::Graph& graph) {
  py::list out;
  for (const ir::Node* node : graph.nodes()) {
    if (node->is_constant()) continue;
    const auto role = passes::role_of(*node);
    py::list inputs, constants, outputs, reals;
    for (size_t k = 0; k < node->inputs().size(); ++k) {
      const ir::Value* input = node->input(k);
      inputs.append(input ? py::object(py::str(input->name())) : py::none());
      if (node->constant_input(k)) constants.append(k);
    }
    for (const ir::Value* output : node->outputs()) {
      outputs.append(output->name());
      if (output->dtype() == DType::f32) reals.append(output->name());
    }
    const auto is_quantized = [](const ir::Value* value) { return value && value->type().quant; };
    const bool quantized =
        std::ranges::any_of(node->inputs(), is_quantized) || std::ranges::any_of(node->outputs(), is_quantized);
    py::list names = py::cast(node->aliases);
    names.append(node->name());
    names.append(node->loc().scope);
    out.append(py::dict(py::arg("node") = node->name(), py::arg("op") = node->op().name,
                        py::arg("role") = role ? py::object(py::str(passes::role_name(*role))) : py::none(),
                        py::arg("inputs") = inputs, py::arg("constants") = constants, py::arg("outputs") = outputs,
                        py::arg("reals") = reals, py::arg("names") = names, py::arg("quantized") = quantized,
                        py::arg("loc") = ops::to_string(node->loc())));
  }
  return out;
}

// Layers for which there are no integers become such that have them.
std::shared_ptr<ir::Graph> for_integers(const ir::Graph& graph, bool attention) {
  auto out = std::make_shared<ir::Graph>(graph.clone());
  if (attention) {
    passes::fold_constants(*out);  // masks
    passes::attention_to_products(*out);
  }
  passes::canonicalize(*out);
  passes::several_to_pairs(*out);
  passes::transposed_to_dense(*out);
  passes::canonicalize(*out);
  ir::verify(*out);
  return out;
}

py::array constant(const ir::Graph& graph, const std::string& name) {
  const ir::Value* value = graph.find_value(name);
  if (!value || !value->producer() || !value->producer()->is_constant())
    throw InvalidModel(text("the graph has no constant '", name, "'."));
  return array_of(value->producer()->tensor("value"));
}

py::list repeated_values(const ir::Graph& graph) {
  py::list out;
  for (const ir::RepeatedValue& value : ir::repeated_values(graph))
    out.append(py::make_tuple(value.name, value.loop, value.keeps_shape));
  return out;
}

std::shared_ptr<ir::Graph> insert_conversions(const ir::Graph& graph, const std::set<std::string>& layers,
                                              const std::map<std::string, Conversion>& values,
                                              const std::vector<Constant>& constants) {
  passes::Conversions conversions;
  conversions.layers.insert(layers.begin(), layers.end());
  const auto read = [](const std::optional<py::array>& array) {
    return array ? std::optional(tensor_of(*array)) : std::nullopt;
  };
  for (const auto& [name, how] : values) {
    const auto& [type, scales, zero_point, before, after] = how;
    passes::ValueConversion& value = conversions.values[name];
    const auto dtype = dtype_from_name(type);
    if (!dtype || !ops::may_be_quantized(*dtype))
      throw InvalidModel(text("no integers of ", type, " stand for reals."));
    value.dtype = *dtype;
    value.quant.scales = scales;
    value.quant.zero_points.assign(1, zero_point);
    value.before = read(before);
    value.after = read(after);
  }
  for (const auto& [layer, index, array, scales, of_blocks] : constants) {
    passes::LayerConstant constant{
        .layer = layer, .index = index, .value = tensor_of(array), .quant = {}, .blocks = {}};
    if (of_blocks) constant.blocks = {tensor_of(of_blocks->first), of_blocks->second};
    if (scales) constant.quant = ops::Quant{.scales = *scales};
    conversions.constants.push_back(std::move(constant));
  }
  auto out = std::make_shared<ir::Graph>(graph.clone());
  passes::insert_conversions(*out, conversions);
  ir::verify(*out);
  return out;
}

std::shared_ptr<ir::Graph> compute_narrow(const ir::Graph& graph, const std::string& type,
                                          const std::set<std::string>& kept) {
  const auto dtype = dtype_from_name(type);
  if (!dtype || !is_narrow_float(*dtype)) throw InvalidModel(text(type, " is no float narrower than f32."));
  auto out = std::make_shared<ir::Graph>(graph.clone());
  passes::compute_narrow(*out, *dtype, {kept.begin(), kept.end()});
  ir::verify(*out);
  return out;
}

}  // namespace

void bind_quantize(py::module_& m) {
  m.def("quantize_roles", &roles, py::arg("graph"),
        "Every node but constants: node, op, role (None: stays as it is), inputs, which of them are constants, "
        "outputs, which of them are f32, names (its own, those of what was folded into it, its module's), whether it "
        "has to do "
        "with quantized types, loc.");
  m.def("for_integers", &for_integers, py::arg("graph"), py::arg("attention"),
        "The canonical form of a graph, with dense convolutions in place of transposed ones, and where asked for with "
        "two products and a softmax in place of attention.");
  m.def("constant", &constant, py::arg("graph"), py::arg("name"), "The array of a constant, by its name.");
  m.def(
      "with_outputs",
      [](const ir::Graph& graph, const std::vector<std::string>& names) {
        return std::make_shared<ir::Graph>(ir::with_outputs(graph, names));
      },
      py::arg("graph"), py::arg("names"),
      "A copy of the graph that returns these values too, behind its own outputs; one that a loop's body computes with "
      "its rounds along a new first axis.");
  m.def(
      "repeated_values", &repeated_values, py::arg("graph"),
      "What the bodies of loops compute, in order: name, the loop's name, and whether its sizes are the same in every "
      "round.");
  m.def("compute_narrow", &compute_narrow, py::arg("graph"), py::arg("type"), py::arg("kept"),
        "A copy of the graph whose nodes on f32 compute in f16 or bf16, but those whose names are in `kept`.");
  m.def("insert_conversions", &insert_conversions, py::arg("graph"), py::arg("layers"), py::arg("values"),
        py::arg("constants"),
        "A copy of the graph whose nodes `layers` compute on integers. `values` gives, by name, (type of the integers, "
        "scales, zero point, factors before rounding or None, factors behind it or None), `constants` (layer, input, "
        "array, scales or None, scales and size of blocks of 4 bits or None): what becomes of the constants that they "
        "read.");
}

}  // namespace hetnn
