// The table of operators as Python data: the importer's map, the documentation and the tests are made from it.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/attributes.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/ops/elementwise/readings.h"
#include "hetnn/ops/op_def.h"
#include "hetnn/passes/differentiate.h"

namespace py = pybind11;

namespace hetnn {
namespace {

/// The fast variants of an operator, by name.
py::list kernels_of(const ops::OpDef& op) {
  py::list out;
  for (const kernels::Variant& variant : kernels::all_kernels()) {
    if (kernels::computes(variant, op)) out.append(variant.name);
  }
  return out;
}

// With the operator's own names of its inputs; nothing where it has no formula of other operators.
std::string formula_text(const ops::OpDef& op) {
  if (op.inputs.empty()) return {};
  const std::string x(op.inputs.front().name), y(op.inputs.back().name);
  if (const auto function = ops::function_from_name(op.name)) return ops::to_string(ops::value_of(*function, x, y));
  const auto predicate = ops::predicate_from_name(op.name);
  return predicate ? ops::to_string(ops::value_of(*predicate, x, y)) : std::string();
}

// What importers ask. The rest takes three times as long to make.
py::dict signature_of(const ops::OpDef& op) {
  py::list inputs, attrs, traits, torch, onnx;
  for (const ops::InputDef& input : op.inputs) {
    inputs.append(py::dict(py::arg("name") = input.name, py::arg("doc") = input.doc,
                           py::arg("optional") = input.optional, py::arg("variadic") = input.variadic));
  }
  for (const ops::AttrDef& attr : op.attrs) {
    py::object preset = py::none();
    if (attr.default_value) preset = std::visit(AsPython{AsPython::Sizes::texts}, *attr.default_value);
    attrs.append(py::dict(py::arg("name") = attr.name, py::arg("kind") = ops::attr_kind_name(attr.kind),
                          py::arg("default") = preset, py::arg("doc") = attr.doc));
  }
  for (const auto& [trait, name] : ops::kTraits) {
    if (op.has(trait)) traits.append(name);
  }
  for (const ops::TorchName& name : op.torch) torch.append(py::make_tuple(name.overload, name.arguments));
  for (const ops::OnnxName& name : op.onnx) onnx.append(py::make_tuple(name.op_type, name.since, name.arguments));
  return py::dict(py::arg("name") = op.name, py::arg("inputs") = inputs, py::arg("attrs") = attrs,
                  py::arg("outputs") = op.outputs, py::arg("traits") = traits, py::arg("torch") = torch,
                  py::arg("onnx") = onnx, py::arg("checks") = op.check != nullptr);
}

py::dict describe(const ops::OpDef& op) {
  py::dict out = signature_of(op);
  py::list constraints;
  for (const ops::Constraint& constraint : op.constraints) {
    constraints.append(py::dict(py::arg("device_class") = constraint.device_class, py::arg("label") = constraint.label,
                                py::arg("text") = constraint.text));
  }
  out["doc"] = op.doc;
  out["formula"] = formula_text(op);
  out["derivative"] = passes::derivative_of(op);
  out["constraints"] = constraints;
  out["kernels"] = kernels_of(op);
  out["tolerance"] = op.tolerance;
  out["samples"] = op.samples;
  return out;
}

// Expressions as operators in their order: each takes numbers, operands by name and what earlier ones made, by place.
class Steps {
 public:
  py::object place(const ops::Expression& x) {
    if (x.op().empty()) return x.name().empty() ? py::object(py::float_(x.number())) : py::object(py::str(x.name()));
    const auto known = places_.find(x.identity());
    if (known != places_.end()) return py::int_(known->second);
    py::list in;
    for (const ops::Expression& each : x.in()) in.append(place(each));
    steps_.append(py::make_tuple(x.op(), in));
    return py::int_(places_[x.identity()] = py::len(steps_) - 1);
  }
  const py::list& list() const { return steps_; }

 private:
  py::list steps_;
  std::map<const void*, size_t> places_;
};

py::object formula(const std::string& name, const std::string& of) {
  const auto function = ops::function_from_name(name);
  if (!function) return py::none();
  const std::vector<ops::Expression> found =
      of == "complex" ? ops::complex_parts_of(*function) : std::vector{ops::value_of(*function)};
  Steps steps;
  py::list results;
  for (const ops::Expression& each : found) {
    if (!each) return py::none();
    results.append(steps.place(each));
  }
  return py::make_tuple(steps.list(), results);
}

}  // namespace

void bind_operators(py::module_& m) {
  const auto rows_of = [](py::dict (*row)(const ops::OpDef&)) {
    py::list rows;
    for (const ops::OpDef* op : ops::OpTable::global().all()) rows.append(row(*op));
    return rows;
  };
  m.def(
      "operators", [rows_of] { return rows_of(describe); },
      "Every operator by name: what signatures() says, constraints, kernels, tolerance, samples; where its derivative "
      "comes from: its formula, a rule, a meaning in smaller operators, or nowhere.");
  m.def(
      "signatures", [rows_of] { return rows_of(signature_of); },
      "Every operator by name: inputs, attributes, outputs, traits, names in torch and ONNX, whether it checks "
      "values.");
  m.def("formula", formula, py::arg("name"), py::arg("of"),
        "An elementwise function's `value` or the parts of its `complex` form: the operators that it is made of, each "
        "with numbers, names of operands and places of earlier ones, and which of "
        "them are the results. None where there is no such form.");
}

}  // namespace hetnn
