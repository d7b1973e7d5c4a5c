// Predicted times of CPU kernels.
#include "hetnn/backends/cpu/roofline.h"

#include <algorithm>

#include "hetnn/backends/cpu/launches.h"
#include "hetnn/target/target.h"

namespace hetnn::backends::cpu {
namespace {

// Fewer products than this for each result leave the multipliers waiting for operands: depthwise, few channels.
constexpr double kNarrowMacsPerElem = 128;
constexpr double kNarrowMacsPerUs = 10e3;
// What runs by its operator's meaning runs on one thread, in plain loops.
constexpr FamilySpeed kMeaning = {.macs_per_us = 500, .flops_per_us = 500, .bytes_per_us = 4e3};

}  // namespace

std::map<std::string, FamilySpeed, std::less<>> Speeds::default_families() {
  std::map<std::string, FamilySpeed, std::less<>> out;
  for (const char* family :
       {"attention", "conv", "elementwise", "meaning", "move", "norm", "pool", "product", "reduce", "transcendental"})
    out[family] = {};
  out["meaning"] = kMeaning;
  for (const char* family : {"attention", "narrow_conv", "narrow_product"}) out[family].macs_per_us = kNarrowMacsPerUs;
  return out;
}

NodeWork work_of(const ir::Node& node, const Bindings& bindings) {
  const kernels::Variant* variant = variant_for(node, bindings);
  const target::ConcreteWork work = target::work_of(node, bindings);
  NodeWork out{.family = variant ? variant->speed : "meaning",
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
  if (const auto function = kernels::function_of(node.call()); function && out.family == "elementwise")
    out.family = kernels::speed_of(function->function);
  return out;
}

double predicted_us(const NodeWork& work, const Speeds& speeds) {
  if (work.view) return speeds.kernel_us / 4;
  const FamilySpeed& speed = speeds.families.find(work.family)->second;
  const double compute_us = work.macs / speed.macs_per_us + work.flops / speed.flops_per_us;
  return speeds.kernel_us + std::max(compute_us, work.bytes / speed.bytes_per_us);
}

}  // namespace hetnn::backends::cpu
