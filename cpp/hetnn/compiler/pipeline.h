// The pipeline: a model on its way through the compiler, and the list of passes that take it there.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/backends/assembler.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/passes/apply_rules.h"
#include "hetnn/passes/legalize.h"

namespace hetnn::pipeline {

/// A subgraph on its way to code, taken out of the model as a graph of its own.
using Subgraph = SubgraphOfPlan;

/// What passes read and change.
struct Draft {
  Draft(ir::Graph model, const TargetSpec& to, const CompileOptions& how);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const backends::Backend& backend(const std::string& device) const;
  report::Report report() const;
  /// What stays as it was written, is left out.
  passes::LegalizeOptions legalize_options() const;

  TargetSpec spec;
  std::vector<std::shared_ptr<const backends::Backend>> backends;  // by device
  target::Target target;
  CompileOptions options;
  plan::NetworkOptions network;     // the options as planning
  backends::LowerOptions lowering;  // and lowering take them

  ir::Graph graph;
  // The model before it was legalized, and its nodes that stayed though a rule would have rewritten them.
  ir::Graph canonical;
  std::optional<plan::NetworkPlan> as_written;  // its plan; none where pins or a strict device leave none
  std::set<std::string, std::less<>> kept_as_written;
  std::vector<passes::Firing> rounded_otherwise;  // of the canonical rules
  std::vector<report::RewriteRow> rewrites;
  std::vector<passes::OutOfRange> out_of_range;
  std::optional<report::RewritingTotals> rewriting;
  plan::NetworkPlan plan;

  backends::Assembler assembler;
  std::vector<int64_t> blocks;      // that each subgraph runs a batch in; 1: at once
  std::vector<Subgraph> subgraphs;  // by number
  std::vector<report::FusionRow> fusions;
  std::map<std::string, std::unique_ptr<Draft>, std::less<>> bodies;  // of loops, by name
  int32_t number = -1;                                                // among the bodies of the model; -1: the model

  bool spent = false;            // large constants are gone: only what they became is read
  std::vector<PassTime> passes;  // done so far
};

/// What of the time a pass takes, as all_passes.inc says.
struct PassShare {
  double alone = 0.2, with_accelerators = 0.2;
};

struct Pass {
  std::string_view name;
  void (*run)(Draft&);
  ir::Stage stage;
  PassShare share;
};

/// all_passes.inc, in order.
std::span<const Pass> passes();

/// Runs the passes that the draft has not had yet, through those of stage `last`. After each, its time is noted; the
/// graph is verified in debug builds and where the environment's HETNN_VERIFY is 1; and its text is written to
/// NN_name.ir in the folder that the options or the environment's HETNN_DUMP name, subgraphs beside it.
void run_passes(Draft& draft, ir::Stage last);

/// The buffer of a value between subgraphs. Feature maps cross as dense nhwc.
void declare_crossing(const ir::Graph& model, const ir::Value& value, backends::Assembler& assembler);

/// What the passes `compute_in_f32` and `fuse` do with one subgraph.
void compute_in_f32(ir::Graph& subgraph, const backends::Backend& backend);
std::vector<report::FusionRow> fuse(ir::Graph& subgraph, const backends::Backend& backend,
                                    const backends::LowerOptions& options);

/// Makes outputs that are inputs, constants or one value twice copies of them: a program writes each output once.
void copy_outputs(Draft& draft);

/// Compiles the lowered accelerator subgraphs for further values of the model's symbols. InvalidModel unless each has
/// one in its range. What a device cannot run at these sizes is thrown, or goes to `refused`, a line a subgraph.
void add_variant(Draft& draft, const Bindings& bindings, std::string* refused = nullptr);
/// Whether there is more to compile for other sizes, in it or in its bodies.
bool has_variants(const Draft& draft);
/// The draft of that number, itself or one of its bodies; null where there is none.
Draft* find_body(Draft& draft, int32_t number);
void check_bindings(const std::vector<Symbol>& symbols, const Bindings& bindings);

}  // namespace hetnn::pipeline
