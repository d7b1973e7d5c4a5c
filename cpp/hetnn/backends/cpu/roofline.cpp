// Predicted times of CPU kernels.
#include "hetnn/backends/cpu/roofline.h"

#include <algorithm>
#include <set>

#include "hetnn/target/target.h"

namespace hetnn::backends::cpu {
namespace {

// Fewer products than this for each result leave the multipliers waiting for operands: depthwise, few channels.
constexpr double kNarrowMacsPerElem = 128;
constexpr double kNarrowMacsPerUs = 10e3;

/// Families of kernels by the names of kernels::all_kernels; what is not here only moves data.
std::string_view family_of_kernel(std::string_view kernel) {
  static const std::map<std::string_view, std::string_view> families = {
      {"linear", "product"},
      {"matmul", "product"},
      {"conv2d", "conv"},
      {"conv1d", "conv"},
      {"conv_transpose2d", "conv"},
      {"attention", "attention"},
      {"max_pool2d", "pool"},
      {"avg_pool2d", "pool"},
      {"adaptive_avg_pool2d", "pool"},
      {"adaptive_max_pool2d", "pool"},
      {"unary", "elementwise"},
      {"binary", "elementwise"},
      {"nary", "elementwise"},
      {"where", "elementwise"},
      {"cast", "elementwise"},
      {"scale_shift", "elementwise"},
      {"layer_norm", "norm"},
      {"rms_norm", "norm"},
      {"group_norm", "norm"},
      {"instance_norm", "norm"},
      {"softmax", "norm"},
      {"log_softmax", "norm"},
      {"reduce", "reduce"},
  };
  auto at = families.find(kernel);
  return at == families.end() ? "move" : at->second;
}

/// Elementwise operations whose time is their arithmetic and not their bytes.
bool is_transcendental(const ops::KernelUse& use) {
  static const std::set<std::string, std::less<>> kernels_operations = {"exp",  "log",       "tanh", "sigmoid", "erf",
                                                                        "gelu", "gelu_tanh", "silu", "mish",    "sin",
                                                                        "cos",  "pow",       "elu",  "softplus"};
  auto op = use.params.find("op");
  const auto* name = op == use.params.end() ? nullptr : std::get_if<std::string>(&op->second);
  return name != nullptr && kernels_operations.contains(*name);
}

}  // namespace

std::map<std::string, FamilySpeed, std::less<>> Speeds::default_families() {
  std::map<std::string, FamilySpeed, std::less<>> out;
  for (const char* family :
       {"attention", "conv", "elementwise", "move", "norm", "pool", "product", "reduce", "transcendental"})
    out[family] = {};
  for (const char* family : {"attention", "narrow_conv", "narrow_product"}) out[family].macs_per_us = kNarrowMacsPerUs;
  return out;
}

NodeWork work_of(const ir::Node& node, const Bindings& bindings) {
  const ops::KernelUse use = node.op().kernel(node);
  const target::ConcreteWork work = target::work_of(node, bindings);
  NodeWork out{.family = family_of_kernel(use.kernel),
               .view = node.op().has(ops::Trait::view),
               .macs = work.macs,
               .flops = work.flops,
               .bytes = static_cast<double>(target::bytes_touched(node, bindings))};
  if (out.family == "move") {
    // What only moves reads no more than it writes: a gather touches a few rows of its table.
    double written_bytes = 0;
    for (const ir::Value* output : node.outputs())
      written_bytes += static_cast<double>(target::value_bytes(*output, bindings));
    out.bytes = std::min(out.bytes, 2 * written_bytes);
  }
  const double results = static_cast<double>(elements(node.output()->shape()).evaluate(bindings));
  const bool narrow = work.macs > 0 && work.macs < kNarrowMacsPerElem * results;
  if (out.family == "conv" && narrow) out.family = "narrow_conv";
  if (out.family == "product" && narrow) out.family = "narrow_product";
  if (out.family == "elementwise" && is_transcendental(use)) out.family = "transcendental";
  return out;
}

double predicted_us(const NodeWork& work, const Speeds& speeds) {
  if (work.view) return speeds.kernel_us / 4;
  const FamilySpeed& speed = speeds.families.find(work.family)->second;
  const double compute_us = work.macs / speed.macs_per_us + work.flops / speed.flops_per_us;
  return speeds.kernel_us + std::max(compute_us, work.bytes / speed.bytes_per_us);
}

}  // namespace hetnn::backends::cpu
