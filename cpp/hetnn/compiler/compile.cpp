// The pipeline: canonical, legal, placed, cut, lowered, packed.
#include "hetnn/compiler/compile.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/verify.h"
#include "hetnn/passes/canonicalize.h"
#include "hetnn/passes/legalize.h"
#include "hetnn/program/pack.h"

namespace hetnn {
namespace {

target::Target target_of(const TargetSpec& spec, std::vector<std::shared_ptr<const backends::Backend>>& made) {
  if (spec.devices.empty()) throw InvalidModel("a target must have at least one device; got none.");
  target::Target out;
  out.name = spec.name;
  out.default_bytes_per_us = spec.bytes_per_us;
  out.default_latency_us = spec.latency_us;
  out.links = spec.links;
  for (const backends::DeviceSpec& device : spec.devices) {
    made.push_back(backends::make_backend(device));
    out.devices.push_back(made.back());
  }
  return out;
}

// A model may return an input, a constant or one value twice. A program writes every output once, into the caller's
// memory, so such an output becomes a copy.
void give_outputs_nodes_of_their_own(ir::Graph& graph) {
  std::set<const ir::Value*> seen;
  ir::Rewriter rewriter(graph);
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    ir::Value* output = graph.outputs()[k];
    const bool written = output->producer() && !output->producer()->is_constant();
    if (!seen.insert(output).second || !written) rewriter.set_output(k, rewriter.add("identity", {output}));
  }
}

// Nodes that the user wants on the general processor: rewriting them for another device would be against the wish.
std::set<std::string, std::less<>> pinned_to_general(const ir::Graph& graph, const target::Target& target,
                                                     const plan::NetworkOptions& options) {
  std::set<std::string, std::less<>> out;
  if (options.pins.empty()) return out;
  const plan::NetworkPlan described = plan::describe_network(graph, target, options);
  for (size_t k = 0; k < described.nodes.size(); ++k) {
    if (described.problem.pins[k].device == 0) out.insert(described.nodes[k]->name());
  }
  return out;
}

// The buffer of a value between subgraphs. Feature maps cross as dense nhwc.
void declare_crossing(const ir::Value& value, backends::Assembler& assembler) {
  const bool feature_map = value.rank() == 4;
  assembler.set_boundary(value.name(),
                         assembler.arena_buffer(value.name(), value.type(), feature_map ? Layout::nhwc : Layout::plain,
                                                feature_map ? value.shape()[1] : Dim(0)));
}

// Buffers for what passes in and out of the model and between subgraphs.
void declare_boundaries(const ir::Graph& model, backends::Assembler& assembler) {
  program::Program& program = assembler.program();
  program.symbols = model.symbols;
  auto declare_port = [&](const ir::Value* value, const std::string& name, program::Place place,
                          std::vector<program::Port>& ports) {
    const int32_t id = assembler.port_buffer(value->name(), value->type(), place);
    assembler.set_boundary(value->name(), id);
    ports.push_back({name, id});
  };
  std::vector<program::Port> state_inputs, state_outputs;  // by the names in `mutations`
  const auto is_state = [&](std::string ir::Mutation::*name, const std::string& wanted) {
    return std::any_of(model.mutations.begin(), model.mutations.end(),
                       [&](const ir::Mutation& mutation) { return mutation.*name == wanted; });
  };
  for (const ir::Value* input : model.inputs()) {
    declare_port(input, input->name(), program::Place::input,
                 is_state(&ir::Mutation::input, input->name()) ? state_inputs : program.inputs);
  }
  for (size_t k = 0; k < model.outputs().size(); ++k) {
    const std::string& name = model.output_names[k];
    declare_port(model.outputs()[k], name, program::Place::output,
                 is_state(&ir::Mutation::output, name) ? state_outputs : program.outputs);
  }
  const auto buffer_of = [](const std::vector<program::Port>& ports, const std::string& name) {
    return std::find_if(ports.begin(), ports.end(), [&](const auto& port) { return port.name == name; })->buffer;
  };
  for (const ir::Mutation& mutation : model.mutations) {
    const std::span bytes(mutation.initial.data(), static_cast<size_t>(mutation.initial.bytes()));
    program.states.push_back({mutation.input, buffer_of(state_inputs, mutation.input),
                              buffer_of(state_outputs, mutation.output), assembler.blob(bytes),
                              mutation.initial.bytes()});
  }
  for (const plan::Subgraph& subgraph : plan::subgraphs_of(model)) {
    for (const ir::Value* output : subgraph.outputs) {
      if (!model.is_output(output)) declare_crossing(*output, assembler);
    }
  }
}

void check_bindings(const std::vector<Symbol>& symbols, const Bindings& bindings) {
  for (const Symbol& symbol : symbols) {
    auto at = bindings.find(symbol.name);
    if (at == bindings.end() || at->second < symbol.min || at->second > symbol.max) {
      throw InvalidModel(text("symbol '", symbol.name, "' must have a value in [", symbol.min, ", ", symbol.max,
                              "]; got ", at == bindings.end() ? std::string("none") : std::to_string(at->second), "."));
    }
  }
}

// Lowers a subgraph into a program that is thrown away, and says what its backend had against it.
std::optional<plan::SubgraphRefusal> try_lowering(const ir::Graph& model, const plan::Subgraph& subgraph,
                                                  const backends::Backend& backend, const CompileOptions& options) {
  ir::Graph extracted = plan::extract(model, subgraph);
  for (ir::Node* node : extracted.nodes()) {
    if (node->is_constant()) continue;
    node->device = subgraph.device;
    node->subgraph = 0;
  }
  backends::Assembler scratch;
  for (const auto* values : {&subgraph.inputs, &subgraph.outputs}) {
    for (const ir::Value* value : *values) declare_crossing(*value, scratch);
  }
  std::vector<plan::FusionRow> fusions;
  const auto first_line = [](const char* what) {
    const std::string message = what;
    return message.substr(0, message.find('\n'));
  };
  try {
    program::Subprogram made = backend.lower(extracted, scratch, options.lower, fusions);
    backend.add_variant(extracted, model.hints(), made, scratch);
    for (const Bindings& bindings : options.shapes) backend.add_variant(extracted, bindings, made, scratch);
  } catch (const backends::NodeDoesNotFit& error) {
    return plan::SubgraphRefusal{first_line(error.what()), error.node()};
  } catch (const DoesNotFit& error) {
    return plan::SubgraphRefusal{first_line(error.what()), {}};
  } catch (const Unsupported& error) {
    return plan::SubgraphRefusal{first_line(error.what()), {}};
  }
  return std::nullopt;
}

}  // namespace

const backends::Backend& PlannedModel::backend(const std::string& device) const {
  return *backends_[target_.device_index(device)];
}

std::unique_ptr<PlannedModel> PlannedModel::make(ir::Graph graph, const TargetSpec& target,
                                                 const CompileOptions& options) {
  auto out = std::make_unique<PlannedModel>();
  out->spec_ = target;
  out->target_ = target_of(target, out->backends_);
  out->options_ = options;
  ir::verify(graph);
  passes::canonicalize(graph);
  give_outputs_nodes_of_their_own(graph);
  for (const Bindings& bindings : options.shapes) check_bindings(graph.symbols, bindings);
  out->canonical_ = graph.clone();
  const auto plan_of = [&](const ir::Graph& legal) { return plan::plan_network(legal, out->target_, options.network); };
  const auto repaired_plan_of = [&](const ir::Graph& legal) {
    return plan::plan_network(legal, out->target_, options.network, [&](const plan::Subgraph& subgraph) {
      return try_lowering(legal, subgraph, out->backend(subgraph.device), options);
    });
  };
  if (out->target_.devices.size() > 1 && options.rewrite != passes::RewriteMode::off) {
    passes::LegalizeOptions legalize;
    legalize.disabled_rules = options.disabled_rules;
    legalize.excluded_nodes = pinned_to_general(graph, out->target_, options.network);
    out->kept_as_written_ = legalize.excluded_nodes;
    const Bindings hints = graph.hints();
    passes::ChosenRewrites chosen = passes::choose_rewrites(
        graph, passes::accelerators(out->target_, hints), options.rewrite,
        [&](const ir::Graph& legal) { return plan_of(legal).result.cost_us; }, legalize);
    graph.stage = ir::Stage::legal;
    out->graph_ = std::move(chosen.graph);
    out->plan_ = repaired_plan_of(out->graph_);
    for (const passes::Rewrite& rewrite : chosen.refused) out->kept_as_written_.insert(rewrite.node);
    plan::Rewriting& rewriting = out->rewriting_;
    for (const passes::Rewrite& rewrite : chosen.taken) {
      rewriting.rows.push_back({.rule = rewrite.rule,
                                .node = rewrite.node,
                                .op = rewrite.op,
                                .form = rewrite.form,
                                .why = rewrite.why,
                                .predicted_us_after = rewrite.expansion_us});
    }
    if (!rewriting.rows.empty()) {
      const plan::NetworkPlan without = plan_of(graph);
      plan::add_worth(without, out->plan_, rewriting.rows);
      rewriting.totals = plan::rewriting_totals(without, out->plan_);
    }
  } else {
    graph.stage = ir::Stage::legal;
    out->graph_ = std::move(graph);
    out->plan_ = repaired_plan_of(out->graph_);
  }
  out->plan_.target = &out->target_;
  plan::apply(out->plan_, out->graph_);
  return out;
}

std::string PlannedModel::report(const std::vector<plan::FusionRow>& fusions) const {
  return plan::report_json(plan_, graph_, options_.strategy, rewriting_, fusions);
}

std::string check_json(ir::Graph graph, const TargetSpec& target) {
  std::vector<std::shared_ptr<const backends::Backend>> backends;
  const target::Target made = target_of(target, backends);
  ir::verify(graph);
  passes::canonicalize(graph);
  return plan::unsupported_json(plan::describe_network(graph, made, {}));
}

std::unique_ptr<Compilation> Compilation::make(ir::Graph graph, const TargetSpec& target,
                                               const CompileOptions& options) {
  auto out = std::make_unique<Compilation>();
  out->model_ = PlannedModel::make(std::move(graph), target, options);
  out->target_json_ = target.json;
  ir::Graph& model = out->model_->graph();
  declare_boundaries(model, out->assembler_);

  program::Program& program = out->assembler_.program();
  const std::vector<plan::Subgraph> subgraphs = plan::subgraphs_of(model);
  std::map<const ir::Value*, int32_t> writer;
  for (size_t k = 0; k < subgraphs.size(); ++k) {
    const plan::Subgraph& subgraph = subgraphs[k];
    const backends::Backend& backend = out->model_->backend(subgraph.device);
    ir::Graph extracted = plan::extract(model, subgraph);
    program::Subprogram made = backend.lower(extracted, out->assembler_, options.lower, out->fusions_);
    made.name = text(subgraph.device, ".", k);
    made.device = subgraph.device;
    for (const ir::Value* input : subgraph.inputs) {
      made.inputs.push_back(out->assembler_.boundary(input->name()));
      if (auto at = writer.find(input); at != writer.end()) made.depends_on.push_back(at->second);
    }
    std::sort(made.depends_on.begin(), made.depends_on.end());
    made.depends_on.erase(std::unique(made.depends_on.begin(), made.depends_on.end()), made.depends_on.end());
    for (const ir::Value* output : subgraph.outputs) {
      made.outputs.push_back(out->assembler_.boundary(output->name()));
      writer[output] = static_cast<int32_t>(k);
    }
    program.subprograms.push_back(std::move(made));
    out->subgraphs_.push_back(std::move(extracted));
  }
  out->add_variant(model.hints());
  for (const Bindings& bindings : options.shapes) out->add_variant(bindings);
  return out;
}

std::unique_ptr<Compilation> Compilation::on_general_processor(const PlannedModel& planned, bool fusion) {
  ir::Graph graph = planned.graph().clone();
  for (ir::Node* node : graph.nodes()) {
    node->device.clear();
    node->subgraph = -1;
    node->group = -1;
  }
  graph.stage = ir::Stage::imported;
  TargetSpec alone = planned.spec();
  alone.devices.resize(1);
  alone.links.clear();
  alone.json = "{}";
  CompileOptions options;
  options.rewrite = passes::RewriteMode::off;
  options.lower.fusion = fusion;
  return make(std::move(graph), alone, options);
}

void Compilation::add_variant(const Bindings& bindings) {
  program::Program& program = assembler_.program();
  check_bindings(program.symbols, bindings);
  for (size_t k = 0; k < subgraphs_.size(); ++k) {
    model_->backend(program.subprograms[k].device)
        .add_variant(subgraphs_[k], bindings, program.subprograms[k], assembler_);
  }
}

std::vector<std::byte> Compilation::image(int64_t weights_begin_bytes) const {
  program::Program program = assembler_.program();
  program.report_json = report();
  program.target_json = target_json_;
  program.hetnn_version = HETNN_VERSION;
  return program::pack(program, weights_begin_bytes);
}

}  // namespace hetnn
