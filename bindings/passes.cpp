// Rules as data for the documentation, and single passes on graphs as text for the tests.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <memory>

#include "hetnn/base/error.h"
#include "hetnn/ir/verify.h"
#include "hetnn/passes/all_rules.h"
#include "hetnn/passes/apply_rules.h"
#include "hetnn/passes/canonicalize.h"
#include "hetnn/passes/differentiate.h"
#include "hetnn/passes/legalize.h"

namespace py = pybind11;

namespace hetnn {
namespace {

py::list rules() {
  py::list out;
  for (const passes::RuleStage& stage : passes::all_rule_sets()) {
    for (const passes::Rule& rule : stage.set->rules) {
      py::list guards;
      for (const passes::Guard& guard : rule.guards) guards.append(guard.text);
      out.append(py::dict(py::arg("pass") = stage.pass, py::arg("set") = stage.set->name,
                          py::arg("set_doc") = stage.set->doc, py::arg("name") = rule.name,
                          py::arg("equation") = rule.equation, py::arg("pattern") = to_string(rule.pattern),
                          py::arg("guards") = guards, py::arg("exactness") = rule.exactness,
                          py::arg("rounds_otherwise") = rule.steps_apart != nullptr));
    }
  }
  return out;
}

std::shared_ptr<ir::Graph> canonicalize(const ir::Graph& graph) {
  auto out = std::make_shared<ir::Graph>(graph.clone());
  passes::canonicalize(*out);
  ir::verify(*out);
  return out;
}

std::shared_ptr<ir::Graph> differentiate(const ir::Graph& graph, const std::string& y,
                                         const std::vector<std::string>& xs) {
  auto out = std::make_shared<ir::Graph>(graph.clone());
  const auto found = [&](const std::string& name) {
    ir::Value* value = out->find_value(name);
    if (!value) throw InvalidModel(text("the graph has no value '", name, "'."));
    return value;
  };
  std::vector<ir::Value*> by;
  for (const std::string& name : xs) by.push_back(found(name));
  ir::Rewriter rewriter(*out);
  const std::vector<ir::Value*> parts = passes::differentiate(rewriter, found(y), by);
  for (size_t k = 0; k < xs.size(); ++k) rewriter.add_output(parts[k], xs[k] + ".gradient");
  ir::verify(*out);
  return out;
}

// A device that has exactly the operators named, each at its price.
py::tuple legalize(const ir::Graph& graph, const std::map<std::string, double>& prices_us,
                   const std::vector<std::string>& disabled_rules, const passes::Magnitudes& inputs_within) {
  auto out = std::make_shared<ir::Graph>(graph.clone());
  const passes::Oracle oracle{
      .supports = [&](const ir::Node& node) { return prices_us.contains(std::string(node.op().name)); },
      .time_us = [&](const ir::Node& node) { return prices_us.at(std::string(node.op().name)); }};
  py::list rewrites;
  const passes::LegalizeOptions options{.disabled_rules = disabled_rules, .inputs_within = inputs_within};
  for (const report::RewriteRow& rewrite : passes::legalize(*out, oracle, options)) {
    rewrites.append(py::dict(py::arg("rule") = rewrite.rule, py::arg("node") = rewrite.node, py::arg("op") = rewrite.op,
                             py::arg("form") = rewrite.form, py::arg("why") = rewrite.why,
                             py::arg("expansion_us") = rewrite.predicted_us_after));
  }
  ir::verify(*out);
  return py::make_tuple(out, rewrites);
}

std::shared_ptr<ir::Graph> apply_rule(const ir::Graph& graph, const std::string& name) {
  for (const passes::RuleStage& stage : passes::all_rule_sets()) {
    for (const passes::Rule& rule : stage.set->rules) {
      if (rule.name != name) continue;
      auto out = std::make_shared<ir::Graph>(graph.clone());
      const passes::RuleSet one{"one", "", {rule}};
      return passes::apply_rules(*out, {&one}).empty() ? nullptr : out;
    }
  }
  throw InvalidModel(text("there is no rule '", name, "'. docs/rules.md lists those that there are."));
}

}  // namespace

void bind_passes(py::module_& m) {
  m.def("rules", &rules, "Every rewrite rule in the order of application, as dicts.");
  m.def("apply_rule", &apply_rule, py::arg("graph"), py::arg("rule"),
        "The graph with one rewrite rule applied wherever it fires; None where it fires nowhere. InvalidModel for an "
        "unknown rule.");
  m.def("canonicalize", &canonicalize, py::arg("graph"), "The canonical form of a graph.");
  m.def("differentiate", &differentiate, py::arg("graph"), py::arg("y"), py::arg("xs"),
        "The graph with further outputs: for each of the values `xs`, by their names, the derivative of the sum of y's "
        "elements, called by its name and `.gradient`. Unsupported names all nodes on the way that have none.");
  m.def("legalize", &legalize, py::arg("graph"), py::arg("prices_us"),
        py::arg("disabled_rules") = std::vector<std::string>(), py::arg("inputs_within") = passes::Magnitudes(),
        "(graph, rewrites) of a canonical graph made legal for a device that has the operators of `prices_us`.");
}

}  // namespace hetnn
