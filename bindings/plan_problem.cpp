// Planning problems and their plans, for hetnn.planning; documents travel as JSON text.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "hetnn/plan/partition/plan_json.h"
#include "hetnn/plan/partition/problem.h"

namespace hetnn {
namespace {

namespace py = pybind11;

/// A plan with the problem it answers.
struct BoundPlan {
  std::shared_ptr<const plan::Problem> problem;
  plan::Options options;
  plan::PartitionResult result;
};

}  // namespace

void bind_plan_problem(py::module_& m) {
  using ProblemPointer = std::shared_ptr<plan::Problem>;
  py::class_<BoundPlan>(m, "PartitionPlan", "A plan of a planning problem.")
      .def(
          "to_json", [](const BoundPlan& self) { return plan::plan_json(*self.problem, self.options, self.result); },
          "The plan as JSON text, in the form of docs/plan-schema.json.")
      .def_property_readonly(
          "plan_us", [](const BoundPlan& self) { return self.result.plan_us; }, "Wall time of planning.");

  py::class_<plan::Problem, ProblemPointer>(m, "PlanProblem", "A planning problem.")
      .def(py::init([](const std::string& json) { return std::make_shared<plan::Problem>(plan::parse_problem(json)); }),
           py::arg("json"), "Reads a problem in the form of docs/partitioning.md.")
      .def_static(
          "generate",
          [](const std::string& kind, int32_t nodes, uint64_t seed, int32_t devices, double unsupported,
             double non_exportable, bool launch, bool shuffle) {
            return std::make_shared<plan::Problem>(
                plan::generate_problem(kind, nodes, seed, {devices, unsupported, non_exportable, launch, shuffle}));
          },
          py::arg("kind"), py::arg("nodes"), py::arg("seed"), py::arg("devices") = 2, py::arg("unsupported") = 0.3,
          py::arg("non_exportable") = 0.0, py::arg("launch") = true, py::arg("shuffle") = true, "A random problem.")
      .def("to_json", &plan::problem_json, "The problem as JSON text.")
      .def(
          "plan",
          [](const ProblemPointer& self, const std::string& strategy, const std::string& options) {
            BoundPlan bound{self, plan::parse_plan_options(strategy, options), {}};
            py::gil_scoped_release unlocked;
            bound.result = plan::partition(*self, bound.options);
            return bound;
          },
          py::arg("strategy") = "cost", py::arg("options") = "{}", "Plans the problem; `options` is a JSON object.")
      .def("__len__", &plan::Problem::size);
}

}  // namespace hetnn
