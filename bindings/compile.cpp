// _core.compile and _core.plan: the compiler's roof.
#include "hetnn/compiler/compile.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "bindings/interrupt.h"
#include "hetnn/base/error.h"
#include "hetnn/base/free_memory.h"
#include "hetnn/base/progress.h"
#include "hetnn/ir/text.h"
#include "hetnn/kernels/elementwise/nary.h"
#include "hetnn/plan/partition/explain/explain.h"
#include "hetnn/runtime/executable.h"

namespace py = pybind11;

namespace hetnn {
namespace {

template <typename Made, typename... More>
std::unique_ptr<Made> make(ir::Graph graph, const std::string& target, const std::string& options,
                           const More&... more) {
  const TargetSpec spec = parse_target(target);
  const CompileOptions settings = parse_options(options);
  const LongCall call;
  return Made::make(std::move(graph), spec, settings, more...);
}

// Of a pass and the share of the whole that is done.
using Progress = py::typing::Callable<void(std::string, double)>;

// Of a function that outlives it.
ProgressScope::Tell telling(const Progress& progress) {
  return [&progress](std::string_view step, double done) {
    const py::gil_scoped_acquire gil;
    progress(step, done);
  };
}

// The graph of a binding is shared with Python and stays as it is: the compiler works on a copy, unless it is given.
std::unique_ptr<Compilation> compile(ir::Graph& graph, const std::string& target, const std::string& options,
                                     const std::string& signature, const std::optional<Progress>& progress,
                                     bool given) {
  std::optional<ProgressScope> scope;
  if (progress) scope.emplace(telling(*progress));
  return make<Compilation>(given ? std::exchange(graph, ir::Graph()) : graph.clone(), target, options, signature);
}

std::unique_ptr<PlannedModel> plan_model(const ir::Graph& graph, const std::string& target, const std::string& options,
                                         const std::optional<Progress>& progress) {
  std::optional<ProgressScope> scope;
  if (progress) scope.emplace(telling(*progress));
  return make<PlannedModel>(graph.clone(), target, options);
}

// An image that Python hands on without a copy.
struct HeldImage {
  program::Image bytes;

  py::buffer_info buffer() const {
    return {const_cast<std::byte*>(bytes.data()),  // the type is that of all buffers; it is read-only
            1,
            "B",
            1,
            {bytes.size()},
            {size_t{1}},
            true};
  }
};

py::list subgraph_rows(const ir::Graph& planned) {
  py::list rows;
  for (SubgraphOfPlan& part : subgraphs_of(planned)) {
    rows.append(py::dict(py::arg("name") = part.name, py::arg("device") = part.device,
                         py::arg("graph") = std::make_shared<ir::Graph>(std::move(part.graph))));
  }
  return rows;
}

std::optional<std::shared_ptr<ir::Graph>> kept(program::Program program, const std::string& called) {
  auto graph = kept_graph(std::make_shared<const program::Program>(std::move(program)), called);
  if (!graph) return std::nullopt;
  return std::make_shared<ir::Graph>(std::move(*graph));
}

py::list pass_rows(const PlannedModel& model) {
  py::list rows;
  for (const PassTime& pass : model.passes())
    rows.append(
        py::dict(py::arg("name") = pass.name, py::arg("stage") = ir::stage_name(pass.stage), py::arg("ms") = pass.ms));
  return rows;
}

}  // namespace

void bind_compile(py::module_& m) {
  py::class_<PlannedModel>(m, "NetworkPlan", "Where every node of a model goes, for hetnn.planning.Plan.")
      .def(
          "to_json", [](const PlannedModel& plan) { return plan.report(); },
          "The plan as JSON text, in the form of docs/report-schema.json.")
      .def(
          "why",
          [](const PlannedModel& plan, const std::string& node) {
            return report::why_json(plan::why_row(plan.plan(), node));
          },
          py::arg("node"), "Why a node is where it is, as JSON text.")
      .def(
          "explain",
          [](const PlannedModel& plan) { return plan::explain_json(plan.plan().problem, plan.plan().result); },
          "Cut, candidates, margin, lower bound and gap, as JSON text.")
      .def("what_if", &PlannedModel::what_if, py::arg("support"), py::call_guard<py::gil_scoped_release>(),
           "The ranked gain of each operator that a device lacks, as JSON text.")
      .def(
          "diff",
          [](const PlannedModel& plan, const PlannedModel& other) {
            return plan::diff_json(plan.plan().problem, plan.plan().result, other.plan().problem, other.plan().result);
          },
          py::arg("other"), "What differs in another plan, as JSON text.")
      .def(
          "problem", [](const PlannedModel& plan) { return plan::problem_json(plan.plan().problem); },
          "The planning problem that the network made, as JSON text.")
      .def_property_readonly("passes", &pass_rows, "The passes that were run: name, stage and ms of each.")
      .def_property_readonly(
          "plan_us", [](const PlannedModel& plan) { return plan.plan().result.plan_us; }, "Wall time of planning.")
      .def(
          "graph", [](const PlannedModel& plan) { return std::make_shared<ir::Graph>(plan.graph().clone()); },
          "The placed graph: with all that rules rewrote for the target, and each node's device.")
      .def(
          "subgraphs", [](const PlannedModel& plan) { return subgraph_rows(plan.graph()); },
          "What each device is given: name, device and graph, by number.")
      .def(
          "graph_text",
          [](const PlannedModel& plan) { return ir::print(plan.graph(), {.constants = false, .locations = true}); },
          "The placed graph as text, without the values of large constants.");

  py::class_<HeldImage>(m, "Image", py::buffer_protocol(), "An executable's bytes, as a buffer.")
      .def_buffer(&HeldImage::buffer);
  py::class_<Compilation>(m, "Compilation", "A compiled model: its image, and the compiler kept for further shapes.")
      .def(
          "image",
          [](const Compilation& c) {
            HeldImage image;
            {
              const py::gil_scoped_release release;
              image.bytes = c.image();
            }
            return py::memoryview(py::cast(std::move(image)));
          },
          "The executable's bytes.")
      .def(
          "take_image",
          [](Compilation& c) {
            HeldImage image;
            {
              const py::gil_scoped_release release;
              image.bytes = c.take_image();
            }
            return py::memoryview(py::cast(std::move(image)));
          },
          "The executable's bytes; the compilation is spent.")
      .def(
          "report", [](const Compilation& c) { return c.model().report(); }, "The report as JSON text.")
      .def_property_readonly(
          "passes", [](const Compilation& c) { return pass_rows(c.model()); },
          "The passes that were run: name, stage and ms of each.")
      .def("add_variant", &Compilation::add_variant, py::arg("bindings"), py::arg("body") = -1,
           py::call_guard<py::gil_scoped_release>(),
           "Compiles the accelerator subgraphs for further values of the model's symbols, or of a body's; returns why "
           "devices cannot run some at these sizes, or empty text.")
      .def_property_readonly("has_variants", &Compilation::has_variants,
                             "Whether some accelerator's code is made for sizes that stay open.")
      .def(
          "specialize",
          [](Compilation& c, const Bindings& bindings, int32_t body, int64_t weights_bytes) {
            std::string refused;
            program::Image out;
            {
              const LongCall call;
              refused = c.add_variant(bindings, body);
              out = c.image(weights_bytes);
            }
            return py::make_tuple(py::bytes(reinterpret_cast<const char*>(out.data()), out.size()), refused);
          },
          py::arg("bindings"), py::arg("body"), py::arg("weights_bytes"),
          "add_variant: the image of what it adds to an executable with so many bytes of weights, and its result.");

  m.def("on_general_processor", &Compilation::on_general_processor, py::arg("plan"), py::arg("fusion"),
        "The graph of a plan on the general processor alone, to measure its nodes; without fusion, one kernel a node.");
  m.def("subgraphs_of", &subgraph_rows, py::arg("planned"),
        "What each device is given of a planned graph: name, device and graph, by number.");
  // Executables are of the module _runtime, which need not be there yet when this is said.
  m.def(
      "kept_graph",
      [](const py::object& executable) {
        return kept(executable.cast<runtime::Executable&>().now(), "the executable");
      },
      py::arg("executable"),
      "The planned graph that an executable of _runtime keeps, if any, with its states as they are.");
  m.def(
      "kept_graph_of_file",
      [](const std::string& path) {
        const std::string called = text("'", path, "'");
        return kept(program::read_program(path, called), called);
      },
      py::arg("path"), "The planned graph that a .hetnn file keeps, if any. InvalidModel where it cannot be read.");
  m.def("return_free_memory", &return_free_memory, py::call_guard<py::gil_scoped_release>(),
        "Gives back to the system what the process has freed and the C library keeps.");
  m.def("known_tuning", &kernels::known_fan_ins, "What kernels measured on this machine, by the kind of layer.");
  m.def("learn_tuning", &kernels::learn_fan_ins, py::arg("known"), "Takes over what another process measured.");
  m.def("compile", &compile, py::arg("graph"), py::arg("target"), py::arg("options"), py::arg("signature") = "",
        py::arg("progress") = py::none(), py::arg("given") = false,
        "Compiles a graph; target, options and the caller's signature are JSON texts. `progress` is called with each "
        "pass, again while it lasts, and the share of the whole that is done. What is `given` is empty afterwards: its "
        "constants need not be there besides what they become.");
  m.def("plan", &plan_model, py::arg("graph"), py::arg("target"), py::arg("options"), py::arg("progress") = py::none(),
        "Plans a graph without compiling it; `progress` as of `compile`.");
  m.def(
      "check",
      [](const ir::Graph& graph, const std::string& target) { return check_json(graph.clone(), parse_target(target)); },
      py::arg("graph"), py::arg("target"), "The nodes that no accelerator takes, with all reasons, as JSON text.");
}

}  // namespace hetnn
