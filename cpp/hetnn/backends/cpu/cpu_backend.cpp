// The general processor: support by trying the kernel, times by a roofline, code as kernel calls.
#include "hetnn/backends/cpu/cpu_backend.h"

#include <algorithm>

#include "hetnn/backends/cpu/calls.h"
#include "hetnn/backends/cpu/emit.h"
#include "hetnn/backends/cpu/roofline.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/ops/quantized.h"
#include "hetnn/passes/compute_in_f32.h"
#include "hetnn/passes/fuse.h"
#include "hetnn/passes/isolate.h"

namespace hetnn::backends {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const DeviceSpec& spec)
      : Backend(spec), speeds_(cpu::parse_speeds(spec.spec_json, "the data sheet of " + spec.name)) {}

  target::Support support(const ir::Node& node) const override {
    target::Support out;
    if (!node.op().kernel) {
      out.reasons.push_back({text(node.op().name, "_missing"), std::string(node.op().name),
                             "an operator with a CPU kernel", text(name(), " has no kernel for ", node.op().name)});
      return out;
    }
    // The kernel itself knows best which types and shapes it takes, so ask it with every symbol at a plain size.
    const Bindings bindings = target::trial_bindings(node);
    try {
      if (!widens(node)) {
        cpu::make_trial_kernel(node, bindings);
      } else {
        ir::Graph alone = passes::isolate(node, {});
        passes::compute_in_f32(alone);
        for (const ir::Node* part : alone.nodes()) {
          if (!part->is_constant()) cpu::make_trial_kernel(*part, bindings);
        }
      }
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      out.reasons.push_back({text(node.op().name, "_kernel"), error.what(), "a call the kernel takes", error.what()});
    }
    return out;
  }

  double time_us(const ir::Node& node, const Bindings& bindings) const override {
    if (widens(node)) {
      ir::Graph alone = passes::isolate(node, {});
      passes::compute_in_f32(alone);
      double sum_us = 0;
      for (const ir::Node* part : alone.nodes()) sum_us += part->is_constant() ? 0 : time_us(*part, bindings);
      return sum_us;
    }
    return cpu::predicted_us(cpu::work_of(node, bindings), speeds_);
  }

  double launch_us() const override { return speeds_.launch_us; }

  program::Subprogram lower(ir::Graph& subgraph, Assembler& assembler, const LowerOptions& options,
                            std::vector<plan::FusionRow>& fusions) const override {
    passes::compute_in_f32(subgraph);
    const std::vector<plan::FusionRow> fused = passes::fuse(subgraph, {.enabled = options.fusion,
                                                                       .can_follow = cpu::can_follow,
                                                                       .combines = true,
                                                                       .in_order = options.deterministic});
    fusions.insert(fusions.end(), fused.begin(), fused.end());
    program::Subprogram out;
    out.code = program::write_cpu_code(cpu::emit(subgraph, assembler, options.tune_threads));
    return out;
  }

 private:
  // Whether the node is computed in f32 between conversions.
  static bool widens(const ir::Node& node) { return ops::has_narrow(node) && !passes::stays_narrow(node); }

  cpu::Speeds speeds_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const DeviceSpec& spec) { return std::make_unique<CpuBackend>(spec); }

}  // namespace hetnn::backends
