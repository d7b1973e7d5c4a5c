// _core.register_backend: kinds of device whose compiler is written in Python.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "hetnn/backends/backend.h"
#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/text.h"
#include "hetnn/ops/sizes.h"
#include "hetnn/plan/cut.h"

namespace py = pybind11;

namespace hetnn {
namespace {

using backends::Assembler;
using backends::Backend;
using backends::DeviceSpec;
using backends::LowerOptions;

// A multiple of the symbol plus a number.
bool is_line(const Dim& dim, const std::string& symbol) {
  const int64_t least = dim.evaluate({{symbol, 0}}), slope = dim.evaluate({{symbol, 1}}) - least;
  return slope != 0 && dim == Dim::symbol(symbol) * Dim(slope) + Dim(least);
}

// Inputs without elements whose shapes tell the sizes that nodes or outputs need and no other input tells: of a node
// that is given a size by an attribute, say. Whoever compiles the graph finds every size in the shape of an input.
std::vector<ir::Value*> tell_sizes(ir::Graph& graph) {
  std::set<std::string> needed;
  for (const ir::Node* node : graph.nodes()) ops::collect_needed_symbols(node->call(), needed);
  const auto collect = [](const ir::Value& value, std::set<std::string>& into) {
    for (const Dim& dim : value.shape()) dim.collect_symbols(into);
  };
  for (const ir::Node* node : graph.nodes()) {
    for (const ir::Value* output : node->outputs()) collect(*output, needed);
    for (const std::string& symbol : ops::defined_symbols(node->call())) needed.erase(symbol);
  }
  for (const ir::Value* input : graph.inputs()) {
    for (const Dim& dim : input->shape()) {
      std::set<std::string> of_it;
      dim.collect_symbols(of_it);
      if (of_it.size() == 1 && is_line(dim, *of_it.begin())) needed.erase(*of_it.begin());
    }
  }
  std::vector<ir::Value*> out;
  out.reserve(needed.size());
  ir::Rewriter rewriter(graph);
  for (const std::string& symbol : needed)
    out.push_back(rewriter.add_input(text("size.", symbol), {DType::u8, {Dim(0), Dim::symbol(symbol)}}));
  return out;
}

// A graph of the node alone, whose values are named by their place: calls that are alike give graphs that are alike.
std::shared_ptr<ir::Graph> alone(const ir::Node& node, const Bindings& sizes) {
  auto out = std::make_shared<ir::Graph>("node");
  for (const auto& [symbol, value] : sizes) out->symbols.push_back({symbol, 0, std::max<int64_t>(value, 1), value});
  ir::Rewriter rewriter(*out);
  std::map<const ir::Value*, ir::Value*> twins;
  std::vector<ir::Value*> inputs;
  for (const ir::Value* input : node.inputs()) {
    if (input && !twins.contains(input)) {
      const std::string name = text("x", twins.size());
      const bool constant = input->producer() && input->producer()->is_constant();
      twins[input] =
          constant ? rewriter.create(input->producer()->op().name, {}, input->producer()->attrs(), name, {})->output()
                   : rewriter.add_input(name, input->type());
    }
    inputs.push_back(input ? twins.at(input) : nullptr);
  }
  const ir::Node* made = rewriter.create(node.op().name, std::move(inputs), node.attrs(), "y", {});
  for (ir::Value* output : made->outputs()) rewriter.add_output(output, output->name());
  tell_sizes(*out);
  out->stage = ir::Stage::cut;
  return out;
}

// The names of inputs and outputs that lie channels last in memory.
std::vector<std::string> images_of(const ir::Graph& subgraph, const Assembler& assembler) {
  std::vector<std::string> out;
  for (const auto& values : {subgraph.inputs(), subgraph.outputs()}) {
    for (const ir::Value* value : values) {
      if (assembler.buffer(assembler.boundary(value->name())).layout == Layout::nhwc) out.push_back(value->name());
    }
  }
  return out;
}

// Those that will, of a subgraph of a model.
std::vector<std::string> images_between(const ir::Graph& model, const plan::Subgraph& subgraph) {
  std::vector<std::string> out;
  for (const auto* values : {&subgraph.inputs, &subgraph.outputs}) {
    for (const ir::Value* value : *values) {
      if (plan::passes_as_image(model, *value)) out.push_back(value->name());
    }
  }
  return out;
}

ops::Reason reason_of(const py::handle& given, const std::string& kind) {
  if (py::isinstance<py::str>(given)) return {kind, "", "", given.cast<std::string>()};
  const auto [label, found, wanted, sentence] =
      given.cast<std::tuple<std::string, std::string, std::string, std::string>>();
  return {label, found, wanted, sentence};
}

// What a method of a vendor's ended with: its refusals are reasons, whatever else it raises too. Ctrl-C goes on.
[[noreturn]] void refuse(py::error_already_set& error, const std::string& device) {
  if (!error.matches(PyExc_Exception)) throw std::move(error);
  const py::object errors = py::module_::import("hetnn.errors");
  const auto message = py::str(error.value()).cast<std::string>();
  if (error.matches(errors.attr("DoesNotFit"))) {
    const py::object node = py::getattr(error.value(), "node", py::none());
    if (!node.is_none()) throw backends::NodeDoesNotFit(message, py::str(node).cast<std::string>());
    throw DoesNotFit(message);
  }
  if (error.matches(errors.attr("Unsupported"))) throw Unsupported(message);
  throw Unsupported(text("device '", device, "': its compiler failed: ",
                         py::str(error.type().attr("__name__")).cast<std::string>(), ": ", message));
}

/// Asks an object with the methods of hetnn.backends.Compiler.
class PythonBackend final : public Backend {
 public:
  PythonBackend(const DeviceSpec& spec, py::object compiler)
      : Backend(spec),
        compiler_(std::move(compiler)),
        launch_us_(compiler_.attr("launch_us").cast<double>()),
        connected_(compiler_.attr("connected").cast<bool>()),
        constant_budget_bytes_(compiler_.attr("constant_budget_bytes").cast<int64_t>()) {}
  ~PythonBackend() override {
    const py::gil_scoped_acquire gil;
    compiler_ = py::object();
  }
  PythonBackend(const PythonBackend&) = delete;
  PythonBackend& operator=(const PythonBackend&) = delete;

  target::Support support(const ir::Node& node) const override {
    const auto graph = alone(node, target::trial_bindings(node));
    return once(supports_, ir::print(*graph, {.constants = false, .locations = false}), [&] {
      target::Support out;
      for (const py::handle& reason : compiler_.attr("supports")(graph))
        out.reasons.push_back(reason_of(reason, std::string(kind())));
      return out;
    });
  }

  double time_us(const ir::Node& node, const Bindings& bindings) const override {
    const target::ConcreteWork work = target::work_of(node, bindings);
    const int64_t bytes = target::bytes_touched(node, bindings);
    const auto graph = alone(node, bindings);
    return once(times_, ir::print(*graph, {.constants = false, .locations = false}),
                [&] { return compiler_.attr("time_us")(graph, work.macs, work.flops, bytes).cast<double>(); });
  }

  std::map<const ir::Node*, double> together_us(const ir::Graph& graph, const Bindings&,
                                                const std::map<const ir::Node*, double>& alone_us, bool /*fusion*/,
                                                bool /*deterministic*/) const override {
    std::map<const ir::Node*, double> out;
    std::vector<ir::Node*> nodes;
    for (ir::Node* node : graph.nodes()) {
      if (alone_us.contains(node)) nodes.push_back(node);
    }
    if (nodes.empty()) return out;
    const py::gil_scoped_acquire gil;
    try {
      const plan::Subgraph all = plan::subgraph_of_nodes(graph, name(), nodes);
      const py::object measured = compiler_.attr("times_us")(std::make_shared<ir::Graph>(plan::extract(graph, all)),
                                                             images_between(graph, all));
      if (measured.is_none()) return out;
      const auto times = measured.cast<std::map<std::string, double>>();
      for (const ir::Node* node : nodes) {
        if (const auto at = times.find(node->name()); at != times.end()) out[node] = at->second;
      }
    } catch (py::error_already_set& error) {
      refuse(error, name());
    }
    return out;
  }

  double launch_us() const override { return launch_us_; }
  bool connected() const override { return connected_; }
  int64_t constant_budget_bytes() const override { return constant_budget_bytes_; }

  program::Subprogram lower(const ir::Graph& subgraph, Assembler& assembler, const LowerOptions&) const override {
    constexpr int64_t kVersion = 1;  // of what Python puts around the vendor's bytes
    const auto graph = std::make_shared<ir::Graph>(subgraph.clone());
    program::Subprogram out;
    for (const ir::Value* size : tell_sizes(*graph))
      out.inputs.push_back(assembler.port_buffer(size->name(), size->type(), program::Place::arena));
    const py::gil_scoped_acquire gil;
    try {
      const auto bytes = compiler_.attr("compile")(graph, images_of(subgraph, assembler)).cast<std::string>();
      out.code = program::Code::of_text(std::string(kind()), kVersion, bytes);
      return out;
    } catch (py::error_already_set& error) {
      refuse(error, name());
    }
  }

 private:
  template <typename T>
  using Known = std::map<std::string, T>;

  // What a call says, which is asked for once; `ask` has the GIL.
  template <typename T, typename Ask>
  T once(Known<T>& known, const std::string& key, const Ask& ask) const {
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = known.find(key); at != known.end()) return at->second;
    }
    const py::gil_scoped_acquire gil;
    try {
      T out = ask();
      const std::lock_guard lock(mutex_);
      return known.emplace(key, std::move(out)).first->second;
    } catch (py::error_already_set& error) {
      refuse(error, name());
    }
  }

  py::object compiler_;
  const double launch_us_;
  const bool connected_;
  const int64_t constant_budget_bytes_;
  mutable std::mutex mutex_;
  mutable Known<target::Support> supports_;
  mutable Known<double> times_;
};

}  // namespace

void bind_backends(py::module_& m) {
  m.def("device_kinds", &backends::backend_kinds, "The kinds of device: those built in, and what was registered.");
  m.def(
      "register_backend",
      [](const std::string& kind, py::object factory) {
        // Kept for good: the table of kinds outlives the interpreter.
        const auto* kept = new py::object(std::move(factory));
        backends::register_backend(kind, [kept](const DeviceSpec& spec) -> std::unique_ptr<Backend> {
          const py::gil_scoped_acquire gil;
          return std::make_unique<PythonBackend>(spec, (*kept)(spec.name, spec.spec_json));
        });
      },
      py::arg("kind"), py::arg("factory"),
      "Adds a kind of device, or replaces it: `factory(name, spec_json)` makes a hetnn.backends.Compiler.");
}

}  // namespace hetnn
