// The table of operators as Python data: the importer's map, the documentation and the tests are made from it.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/attributes.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/ops/op_def.h"

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

py::dict describe(const ops::OpDef& op) {
  py::list inputs, attrs, traits, torch, onnx, constraints;
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
  for (const ops::Constraint& constraint : op.constraints) {
    constraints.append(py::dict(py::arg("device_class") = constraint.device_class, py::arg("label") = constraint.label,
                                py::arg("text") = constraint.text));
  }
  return py::dict(py::arg("name") = op.name, py::arg("doc") = op.doc, py::arg("inputs") = inputs,
                  py::arg("attrs") = attrs, py::arg("outputs") = op.outputs, py::arg("traits") = traits,
                  py::arg("torch") = torch, py::arg("onnx") = onnx, py::arg("constraints") = constraints,
                  py::arg("kernels") = kernels_of(op), py::arg("checks") = op.check != nullptr,
                  py::arg("tolerance") = op.tolerance, py::arg("samples") = op.samples);
}

}  // namespace

void bind_operators(py::module_& m) {
  m.def(
      "operators",
      [] {
        py::list rows;
        for (const ops::OpDef* op : ops::OpTable::global().all()) rows.append(describe(*op));
        return rows;
      },
      "Every operator by name: inputs, attributes, traits, names in torch and ONNX, whether it checks values, "
      "constraints, tolerance, samples.");
}

}  // namespace hetnn
