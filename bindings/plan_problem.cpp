// Planning problems and their plans, for hetnn.planning; documents travel as JSON text.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <unordered_map>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/explain/explain.h"
#include "hetnn/plan/partition/problem/problem.h"
#include "hetnn/plan/partition/strategies/plan_json.h"

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
      .def(
          "why", [](const BoundPlan& self, const std::string& id) { return why_json(*self.problem, self.result, id); },
          py::arg("id"), "Why a node is where it is, as JSON text.")
      .def(
          "explain", [](const BoundPlan& self) { return explain_json(*self.problem, self.result); },
          "Cut, candidates, margin, lower bound and gap, as JSON text.")
      .def(
          "what_if",
          [](const BoundPlan& self, const std::vector<std::string>& support) {
            py::gil_scoped_release unlocked;
            return what_if_json(*self.problem, self.options, self.result, support);
          },
          py::arg("support"), "The ranked gain of each unsupported kind, as JSON text.")
      .def(
          "diff",
          [](const BoundPlan& self, const BoundPlan& other) {
            return diff_json(*self.problem, self.result, *other.problem, other.result);
          },
          py::arg("other"), "What differs in another plan, as JSON text.")
      .def(
          "problem", [](const BoundPlan& self) { return plan::problem_json(*self.problem); },
          "The problem that it answers, as JSON text.")
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
      .def(
          "plan_with_repair",
          [](const ProblemPointer& self, const std::string& strategy, const std::string& options,
             const std::function<py::object(const std::string&, const std::vector<std::string>&)>& backend) {
            BoundPlan bound{self, plan::parse_plan_options(strategy, options), {}};
            std::unordered_map<std::string, int32_t> index;
            for (int32_t v = 0; v < self->size(); ++v) index[self->ids[static_cast<size_t>(v)]] = v;
            bound.result = plan::partition_with_repair(
                *self, bound.options, [&](const plan::PartitionResult& result, int32_t subgraph) {
                  const auto s = static_cast<size_t>(subgraph);
                  std::vector<std::string> ids;
                  for (const int32_t v : result.nodes[s]) ids.push_back(self->ids[static_cast<size_t>(v)]);
                  const py::object answer =
                      backend(self->devices[static_cast<size_t>(result.subgraphs[s].device)].name, ids);
                  plan::Refusal refusal;
                  if (answer.is_none()) return refusal;
                  const auto [reason, nodes] = answer.cast<std::pair<std::string, std::vector<std::string>>>();
                  refusal.refused = true;
                  refusal.reason = reason;
                  for (const std::string& id : nodes) {
                    const auto found = index.find(id);
                    if (found == index.end())
                      throw InvalidModel(text("backend: it refused node '", id, "', which the problem does not have."));
                    refusal.nodes.push_back(found->second);
                  }
                  return refusal;
                });
            return bound;
          },
          py::arg("strategy"), py::arg("options"), py::arg("backend"),
          "Plans and repairs: `backend(device, ids)` returns None or (reason, ids at fault) for each accelerator "
          "subgraph.")
      .def("__len__", &plan::Problem::size);
}

}  // namespace hetnn
