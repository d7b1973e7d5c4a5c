// The roof: from an imported graph and a target to a program. The order of the passes stands in all_passes.inc alone.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/backends/backend.h"
#include "hetnn/ir/graph.h"
#include "hetnn/passes/legalize.h"
#include "hetnn/plan/network.h"
#include "hetnn/program/pack.h"
#include "hetnn/program/program.h"

namespace hetnn {

/// A target as data: its devices, the first the general processor, and the links between them.
struct TargetSpec {
  std::string name = "target";
  std::string json = {};  // as it was read
  std::vector<backends::DeviceSpec> devices = {};
  std::vector<target::Link> links = {};
  double bytes_per_us = 1000;
  double latency_us = 0;
};
/// Reads a target in the form of docs/json.md. InvalidModel naming the key.
TargetSpec parse_target(std::string_view text);
std::string target_schema();

using Words = std::map<std::string, std::string>;
using Figures = std::map<std::string, double>;
using FiguresByNode = std::map<std::string, Figures>;

/// What the general processor does with numbers too small for a normal f32 or f64: they count as zeros, or are kept.
enum class Denormals : uint8_t { flush, keep };

/// options.inc. What needs more than the compiler (measuring, caches) the Python functions do first: they leave
/// `measured_us`, and in `threads` how many are usable; nothing is tuned where that is not given.
struct CompileOptions {
#define HETNN_OPTION(type, name, preset, convert, flag, doc) type name = preset;
#include "hetnn/compiler/options.inc"
#undef HETNN_OPTION
};
/// Reads options and writes all of them back. InvalidModel naming the option.
CompileOptions parse_options(std::string_view text);
std::string options_json(const CompileOptions& options);
std::string options_schema();

/// A row of options.inc for documents and commands; `schema` is JSON text with the default, if any.
struct OptionRow {
  std::string_view name, flag, doc;
  std::string schema;
};
std::vector<OptionRow> option_rows();

/// What planning and lowering take from the options.
plan::NetworkOptions network_options(const CompileOptions& options);
backends::LowerOptions lower_options(const CompileOptions& options);

namespace pipeline {
struct Draft;
}

/// What one device is given: a graph of its own, by the name that reports and executables have for it.
struct SubgraphOfPlan {
  std::string name;  // its device and number
  std::string device;
  ir::Graph graph;
};

/// Those of a planned graph, by number.
std::vector<SubgraphOfPlan> subgraphs_of(const ir::Graph& planned);

/// The planned graph that was kept in a program (option `keep_graph`), if any; its constants are the program's weights.
/// InvalidModel naming `called` where it is not as the compiler writes it.
std::optional<ir::Graph> kept_graph(const std::shared_ptr<const program::Program>& program, const std::string& called);

/// A pass that was run, for reports.
struct PassTime {
  std::string_view name;
  ir::Stage stage;
  double ms;
};

/// A model with every node placed, the plan and what was rewritten: the pipeline up to the stage cut (pipeline.h).
class PlannedModel {
 public:
  static std::unique_ptr<PlannedModel> make(ir::Graph graph, const TargetSpec& target, const CompileOptions& options);
  ~PlannedModel();

  const ir::Graph& graph() const;
  const plan::NetworkPlan& plan() const;
  /// The passes run so far.
  const std::vector<PassTime>& passes() const;
  /// The report as JSON text; the same model and options give the same text.
  std::string report() const;

  /// What the plan would gain if a device supported one more operator of the model as it was written, before rewriting:
  /// JSON rows `{"device", "support", "nodes": [{"node", "loc", "module"}], "rewritten", "cost_us", "gain_us"}`, the
  /// greatest gain first. `ops` are names of operators here, in torch or in ONNX; none: every operator that a device
  /// lacks. InvalidModel for a name that no node of the model has.
  std::string what_if(const std::vector<std::string>& ops) const;

 private:
  friend class Compilation;
  explicit PlannedModel(std::unique_ptr<pipeline::Draft> draft);
  std::unique_ptr<pipeline::Draft> draft_;
};

/// Every node of a model that the target's accelerators do not take as it stands, with all reasons and source lines:
/// JSON rows of `report::nodes_json`.
std::string check_json(ir::Graph graph, const TargetSpec& target);

/// A compiled model: the program, and what is needed to compile accelerator subgraphs for further shapes.
class Compilation {
 public:
  /// Throws Unsupported, DoesNotFit and InvalidModel naming nodes. Holds code for all of `options.shapes`.
  /// `signature_json` goes with the image.
  static std::unique_ptr<Compilation> make(ir::Graph graph, const TargetSpec& target, const CompileOptions& options,
                                           std::string signature_json = {});

  /// Compiles the accelerator subgraphs for further values of the model's symbols; every symbol must have one in its
  /// range. What is compiled already is left alone. `body`: of that body's symbols, where it is not -1. Why devices
  /// cannot run subgraphs at these sizes, a line each; empty where all can. Not thread-safe.
  std::string add_variant(const Bindings& bindings, int32_t body = -1);
  /// Whether some accelerator's code is made for sizes that stay open.
  bool has_variants() const;

  /// The planned graph on the general processor alone, what measures the nodes' times: without fusion one kernel for
  /// each node. Nodes keep their names where canonicalizing does not change them.
  static std::unique_ptr<Compilation> on_general_processor(const PlannedModel& planned, bool fusion);

  const PlannedModel& model() const { return *model_; }
  /// The executable image, or what is to be added to an executable that has the weights before `weights_begin_bytes`.
  program::Image image(int64_t weights_begin_bytes = 0) const;
  /// The executable image, made when the compiler's graphs and constants are gone: nothing can be asked afterwards.
  program::Image take_image();

 private:
  program::Program program() const;

  std::unique_ptr<PlannedModel> model_;
  std::string signature_json_;
};

}  // namespace hetnn
