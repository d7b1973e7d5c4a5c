// _core.compile and _core.plan: the compiler's roof.
#include "hetnn/compiler/compile.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "hetnn/ir/text.h"

namespace py = pybind11;

namespace hetnn {
namespace {

// The graph of a binding is shared with Python and stays as it is; the compiler works on a copy.
template <typename Made>
std::unique_ptr<Made> make(const ir::Graph& graph, const std::string& target, const std::string& options) {
  const TargetSpec spec = parse_target(target);
  const CompileOptions settings = parse_options(options);
  ir::Graph copy = graph.clone();
  py::gil_scoped_release release;
  return Made::make(std::move(copy), spec, settings);
}

py::bytes bytes_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

py::object json_loads(const std::string& json) { return py::module_::import("json").attr("loads")(json); }

}  // namespace

void bind_compile(py::module_& m) {
  py::class_<PlannedModel>(m, "Plan", "Where every node of a model goes, and why. Made by hetnn.plan.")
      .def(
          "report",
          [](const PlannedModel& plan, const std::string& format) -> py::object {
            if (format == "json") return py::str(plan.report());
            if (format == "dict") return json_loads(plan.report());
            if (format == "text") return py::module_::import("hetnn.report").attr("as_text")(json_loads(plan.report()));
            throw InvalidModel(text("a report's format is dict, json or text; got '", format, "'."));
          },
          py::arg("format") = "text", "The report as text, dict or JSON text.")
      .def(
          "to_json", [](const PlannedModel& plan) { return plan.report(); },
          "The report as JSON text of a stable schema.")
      .def(
          "why",
          [](const PlannedModel& plan, const std::string& node) {
            return json_loads(plan::why_json(plan.plan(), node));
          },
          py::arg("node"), "Device, cost here and elsewhere, reasons, and the change that would move the node.")
      .def(
          "graph_text",
          [](const PlannedModel& plan) { return ir::print(plan.graph(), {.constants = false, .locations = true}); },
          "The placed graph as text, without the values of large constants.");

  py::class_<Compilation>(m, "Compilation", "A compiled model: its image, and the compiler kept for further shapes.")
      .def(
          "image", [](const Compilation& c) { return bytes_of(c.image()); }, "The executable's bytes.")
      .def(
          "report", [](const Compilation& c) { return c.report(); }, "The report as JSON text.")
      .def("add_variant", &Compilation::add_variant, py::arg("bindings"), py::call_guard<py::gil_scoped_release>(),
           "Compiles the accelerator subgraphs for further values of the model's symbols.")
      .def(
          "specialise",
          [](Compilation& c, const Bindings& bindings) {
            std::vector<std::byte> out;
            {
              py::gil_scoped_release release;
              c.add_variant(bindings);
              out = c.image();
            }
            return bytes_of(out);
          },
          py::arg("bindings"), "add_variant, then image.");

  m.def("compile", &make<Compilation>, py::arg("graph"), py::arg("target"), py::arg("options"),
        "Compiles a graph; target and options are JSON texts.");
  m.def("plan", &make<PlannedModel>, py::arg("graph"), py::arg("target"), py::arg("options"),
        "Plans a graph without compiling it.");
}

}  // namespace hetnn
