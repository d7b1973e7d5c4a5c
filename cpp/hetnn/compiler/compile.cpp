// The roof: a model through the pipeline, and what can be asked of it then.
#include "hetnn/compiler/compile.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "hetnn/base/error.h"
#include "hetnn/base/free_memory.h"
#include "hetnn/compiler/pipeline.h"
#include "hetnn/ir/body_graph.h"
#include "hetnn/ir/symbols.h"
#include "hetnn/ir/verify.h"
#include "hetnn/ops/control/loop.h"
#include "hetnn/passes/canonicalize.h"
#include "hetnn/passes/check_constants.h"
#include "hetnn/program/pack.h"

namespace hetnn {

PlannedModel::PlannedModel(std::unique_ptr<pipeline::Draft> draft) : draft_(std::move(draft)) {}
PlannedModel::~PlannedModel() = default;

std::unique_ptr<PlannedModel> PlannedModel::make(ir::Graph graph, const TargetSpec& target,
                                                 const CompileOptions& options) {
  auto draft = std::make_unique<pipeline::Draft>(std::move(graph), target, options);
  pipeline::run_passes(*draft, ir::Stage::canonical);
  passes::check_constants(draft->graph);  // not those of bodies, which may never run
  pipeline::run_passes(*draft, ir::Stage::cut);
  plan::require_rules(draft->network, draft->plan.rules_met);
  return std::unique_ptr<PlannedModel>(new PlannedModel(std::move(draft)));
}

const ir::Graph& PlannedModel::graph() const { return draft_->graph; }
const plan::NetworkPlan& PlannedModel::plan() const { return draft_->plan; }
const std::vector<PassTime>& PlannedModel::passes() const { return draft_->passes; }

std::string PlannedModel::report() const { return report::report_json(draft_->report()); }

namespace {

// Those of bodies behind those of the graph around them.
std::vector<report::NodeRow> unsupported(ir::Graph graph, const TargetSpec& target) {
  pipeline::Draft draft(std::move(graph), target, {});
  passes::canonicalize(draft.graph);
  std::vector<report::NodeRow> out = plan::unsupported_nodes(plan::describe_network(draft.graph, draft.target, {}));
  for (const ir::Node* node : draft.graph.nodes()) {
    if (ops::is_loop(node->call()))
      std::ranges::move(unsupported(ir::body_graph(draft.graph, *node), target), std::back_inserter(out));
  }
  return out;
}

}  // namespace

std::string check_json(ir::Graph graph, const TargetSpec& target) {
  return report::nodes_json(unsupported(std::move(graph), target));
}

std::unique_ptr<Compilation> Compilation::make(ir::Graph graph, const TargetSpec& target, const CompileOptions& options,
                                               std::string signature_json) {
  auto out = std::make_unique<Compilation>();
  out->signature_json_ = std::move(signature_json);
  out->model_ = PlannedModel::make(std::move(graph), target, options);
  pipeline::run_passes(*out->model_->draft_, ir::Stage::planned);
  return out;
}

std::unique_ptr<Compilation> Compilation::on_general_processor(const PlannedModel& planned, bool fusion) {
  ir::Graph graph = planned.graph().clone();
  for (ir::Node* node : graph.nodes()) {
    node->device.clear();
    node->subgraph = -1;
    node->launch = -1;
  }
  graph.stage = ir::Stage::imported;
  TargetSpec alone = planned.draft_->spec;
  alone.devices.resize(1);
  alone.links.clear();
  alone.json = "{}";
  CompileOptions options;
  options.rewrite = passes::RewriteMode::off;
  options.fusion = fusion;
  return make(std::move(graph), alone, options);
}

std::string Compilation::add_variant(const Bindings& bindings, int32_t body) {
  pipeline::Draft& model = *model_->draft_;
  pipeline::Draft* draft = body < 0 ? &model : pipeline::find_body(model, body);
  if (!draft) throw InvalidModel(text("the model has no body of number ", body, "."));
  Bindings free = bindings;  // a run that is part of the way through also knows sizes that nodes have defined
  for (const auto& [symbol, node] : ir::definers(draft->graph)) free.erase(symbol);
  std::string refused;
  const auto add = [&] { pipeline::add_variant(*draft, free, &refused); };
  if (body < 0) {
    add();
  } else {
    model.assembler.add_to_body(body, draft->assembler, add);
  }
  return refused;
}

bool Compilation::has_variants() const { return pipeline::has_variants(*model_->draft_); }

program::Program Compilation::program() const {
  const pipeline::Draft& draft = *model_->draft_;
  program::Program out = draft.assembler.program();
  out.signature_json = signature_json_;
  out.report_json = model_->report();
  out.target_json = draft.spec.json;
  out.hetnn_version = HETNN_VERSION;
  return out;
}

program::Image Compilation::image(int64_t weights_begin_bytes) const {
  return program::pack(program(), weights_begin_bytes);
}

program::Image Compilation::take_image() {
  program::Program made = program();
  model_.reset();
  return_free_memory();
  return program::pack(std::move(made));
}

}  // namespace hetnn
