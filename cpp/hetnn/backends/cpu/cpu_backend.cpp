// The general processor: support by asking the kernels, times by a roofline, code as kernel calls.
#include "hetnn/backends/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>

#include "hetnn/backends/cpu/emit.h"
#include "hetnn/backends/cpu/launches.h"
#include "hetnn/backends/cpu/roofline.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/isa.h"
#include "hetnn/kernels/kernel.h"
#include "hetnn/ops/quantized.h"
#include "hetnn/passes/compute_in_f32.h"
#include "hetnn/passes/isolate.h"

namespace hetnn::backends {
namespace {

bool is_denormal(float scale) { return std::fpclassify(scale) == FP_SUBNORMAL; }

bool has_denormal_scale(const ops::Type& type) {
  return type.quant &&
         std::ranges::any_of(type.quant->scales, [](double scale) { return is_denormal(static_cast<float>(scale)); });
}

/// Whether integers of a call stand for multiples of a number so small that it would count as zero: real / scale would
/// be infinite. Scales of blocks are a constant input.
bool computes_with_denormal_scales(const ir::Node& node) {
  const auto holds = [](const ir::Value* value) { return value && has_denormal_scale(value->type()); };
  if (std::ranges::any_of(node.inputs(), holds) || std::ranges::any_of(node.outputs(), holds)) return true;
  if (!node.attrs().contains("block")) return false;
  for (size_t k = 1; k < node.inputs().size(); ++k) {
    const Tensor* scales = node.constant_input(k);
    if (scales && scales->dtype() == DType::f32 && std::ranges::any_of(scales->values<float>(), is_denormal))
      return true;
  }
  return false;
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const DeviceSpec& spec)
      : Backend(spec), speeds_(cpu::parse_speeds(spec.spec_json, "the data sheet of " + spec.name)) {
    kernels::chosen_isa();  // throws where HETNN_TARGET names no instructions of this machine
  }

  /// Every operator runs: by a variant where one takes the call, else by its meaning.
  target::Support support(const ir::Node& node) const override {
    target::Support out;
    if (node.op().meaning) return out;
    out.reasons.push_back({text(node.op().name, "_missing"), std::string(node.op().name), "an operator with a meaning",
                           text(name(), " cannot compute ", node.op().name)});
    return out;
  }

  double time_us(const ir::Node& node, const Bindings& bindings) const override {
    if (passes::needs_f32(node, narrow_arithmetic(bindings))) {
      ir::Graph alone = passes::isolate(node, {});
      passes::compute_in_f32(alone, {[](const ir::Node&) { return false; }});
      double sum_us = 0;
      for (const ir::Node* part : alone.nodes()) sum_us += part->is_constant() ? 0 : time_us(*part, bindings);
      return sum_us;
    }
    return cpu::predicted_us(node, bindings, speeds_);
  }

  double launch_us() const override { return speeds_.launch_us; }
  bool runs_in_blocks() const override { return true; }

  bool computes_narrow(const ir::Node& node, const Bindings& hints) const override {
    const kernels::Variant* variant = cpu::variant_for(node, hints);
    return (variant && variant->integers) || cpu::computes_halves(node, hints) || cpu::bounds_halves(node, hints);
  }

  bool reads_narrow(const ir::Node& node, size_t input) const override {
    return cpu::is_constant(*node.input(input)) && kernels::reads_narrow(node.op(), static_cast<int>(input));
  }

  passes::FuseOptions fusing(const LowerOptions& options, const Bindings& hints) const override {
    return {.enabled = options.fusion,
            .can_follow = [hints](std::span<const ir::Node* const> launch,
                                  const ir::Node& follower) { return cpu::can_follow(launch, follower, hints); },
            .combines = true,
            .kept_bytes = static_cast<double>(speeds_.machine.threads) *
                          static_cast<double>(speeds_.machine.cache_bytes[kernels::kSecondLevel]),
            .deterministic = options.deterministic};
  }

  program::Subprogram lower(const ir::Graph& subgraph, Assembler& assembler,
                            const LowerOptions& options) const override {
    program::Subprogram out;
    const bool keep = options.keep_denormals || std::ranges::any_of(subgraph.nodes(), [](const ir::Node* node) {
                        return computes_with_denormal_scales(*node);
                      });
    program::CpuCode code = cpu::emit(subgraph, assembler,
                                      {.deterministic = options.deterministic,
                                       .machine = speeds_.machine,
                                       .tune_threads = options.tune_threads,
                                       .spent = options.spent});
    code.keep_denormals = keep;
    code.deterministic = options.deterministic;
    out.code = program::write_cpu_code(code);
    return out;
  }

 private:
  cpu::Speeds speeds_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const DeviceSpec& spec) { return std::make_unique<CpuBackend>(spec); }

}  // namespace hetnn::backends
