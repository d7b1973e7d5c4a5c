// The roof: from an imported graph and a target to a program. This file's source is the only one that knows the order
// of the passes.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hetnn/backends/backend.h"
#include "hetnn/ir/graph.h"
#include "hetnn/passes/legalize.h"
#include "hetnn/plan/network.h"
#include "hetnn/program/program.h"

namespace hetnn {

/// A target as data: its devices, the first the general processor, and the links between them.
struct TargetSpec {
  std::string name;
  std::string json;  // as it was read
  std::vector<backends::DeviceSpec> devices;
  std::vector<target::Link> links;
  double bytes_per_us = 1000;
  double latency_us = 0;
};
/// Reads `{"name", "devices": [{"name", "kind", "spec"}], "links": [...] | {...}}`. InvalidModel naming the key.
TargetSpec parse_target(std::string_view json);

struct CompileOptions {
  std::string strategy = "cost";
  plan::NetworkOptions network;
  passes::RewriteMode rewrite = passes::RewriteMode::automatic;
  std::vector<std::string> disabled_rules;
  backends::LowerOptions lower;
  /// Values of a dynamic model's symbols for which accelerator code must exist, besides those of its example.
  std::vector<Bindings> shapes;
};
/// Reads the settings that the Python functions pass (docs/options.md). InvalidModel naming the key.
CompileOptions parse_options(std::string_view json);

/// A graph that is canonical, legal for its target, placed and cut, with the plan and what was rewritten.
class PlannedModel {
 public:
  /// Takes the graph through canonicalizing, legalizing and planning. With RewriteMode::automatic the plan with
  /// rewrites is compared with the plan without, and the cheaper one kept; the rows say what each rewrite is worth.
  /// Every accelerator subgraph is lowered on trial, for the example's sizes and all of `options.shapes`; where its
  /// backend throws DoesNotFit or Unsupported the plan is repaired, and its notes say how.
  static std::unique_ptr<PlannedModel> make(ir::Graph graph, const TargetSpec& target, const CompileOptions& options);

  const ir::Graph& graph() const { return graph_; }
  ir::Graph& graph() { return graph_; }
  const target::Target& target() const { return target_; }
  const plan::NetworkPlan& plan() const { return plan_; }
  const std::vector<plan::RewriteRow>& rewrites() const { return rewriting_.rows; }
  const TargetSpec& spec() const { return spec_; }
  const CompileOptions& options() const { return options_; }
  const backends::Backend& backend(const std::string& device) const;
  std::string report(const std::vector<plan::FusionRow>& fusions = {}) const;

  /// What the plan would gain if a device supported one more operator of the model as it was written, before rewriting:
  /// JSON rows `{"device", "support", "nodes": [{"node", "loc", "module"}], "rewritten", "cost_us", "gain_us"}`, the
  /// greatest gain first. `ops` are names of operators here, in torch or in ONNX; none: every operator that a device
  /// lacks. InvalidModel for a name that no node of the model has.
  std::string what_if(const std::vector<std::string>& ops) const;

 private:
  ir::Graph graph_;
  TargetSpec spec_;
  target::Target target_;
  std::vector<std::shared_ptr<const backends::Backend>> backends_;
  CompileOptions options_;
  plan::NetworkPlan plan_;
  plan::Rewriting rewriting_;
  // The model before it was legalized, and its nodes that stayed though a rule would have rewritten them.
  ir::Graph canonical_;
  std::set<std::string, std::less<>> kept_as_written_;
};

/// Every node of a model that the target's accelerators do not take as it stands, with all reasons and source lines:
/// JSON rows of `plan::unsupported_json`.
std::string check_json(ir::Graph graph, const TargetSpec& target);

/// A compiled model: the program, and what is needed to compile accelerator subgraphs for further shapes.
class Compilation {
 public:
  /// Throws Unsupported, DoesNotFit and InvalidModel naming nodes. Holds code for all of `options.shapes`.
  static std::unique_ptr<Compilation> make(ir::Graph graph, const TargetSpec& target, const CompileOptions& options);

  /// Compiles the accelerator subgraphs for further values of the model's symbols; every symbol must have one in its
  /// range. What is compiled already is left alone. Not thread-safe.
  void add_variant(const Bindings& bindings);

  /// The planned graph on the general processor alone, what measures the nodes' times: without fusion one kernel for
  /// each node. Nodes keep their names where canonicalizing does not change them.
  static std::unique_ptr<Compilation> on_general_processor(const PlannedModel& planned, bool fusion);

  const PlannedModel& model() const { return *model_; }
  std::string report() const { return model_->report(fusions_); }
  /// The executable image, or what is to be added to an executable that has the weights before `weights_begin_bytes`.
  std::vector<std::byte> image(int64_t weights_begin_bytes = 0) const;

 private:
  std::unique_ptr<PlannedModel> model_;
  backends::Assembler assembler_;
  std::vector<ir::Graph> subgraphs_;  // as lowered, by number
  std::vector<plan::FusionRow> fusions_;
  std::string target_json_;
};

}  // namespace hetnn
