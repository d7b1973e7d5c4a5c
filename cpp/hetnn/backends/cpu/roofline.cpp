// Predicted times of CPU nodes.
#include "hetnn/backends/cpu/roofline.h"

#include <algorithm>

#include "hetnn/backends/cpu/launches.h"
#include "hetnn/kernels/query/work.h"
#include "hetnn/target/target.h"

namespace hetnn::backends::cpu {
namespace {

kernels::Amounts amounts_of(const ir::Node& node, const Bindings& bindings) {
  const target::ConcreteWork work = target::work_of(node, bindings);
  kernels::Amounts out{work.macs, work.flops, static_cast<double>(target::bytes_touched(node, bindings))};
  if (work.macs == 0 && work.flops == 0) {
    // What only moves reads no more than it writes: a gather touches a few rows of its table.
    double written_bytes = 0;
    for (const ir::Value* output : node.outputs())
      written_bytes += static_cast<double>(target::value_bytes(*output, bindings));
    out.bytes = std::min(out.bytes, 2 * written_bytes);
  }
  return out;
}

}  // namespace

double predicted_us(const ir::Node& node, const Bindings& bindings, const Speeds& speeds) {
  if (node.op().has(ops::Trait::view)) return speeds.kernel_us / 4;
  const kernels::Amounts amounts = amounts_of(node, bindings);
  const kernels::Machine& machine = speeds.machine;
  const std::optional<Chosen> chosen = chosen_among_others(node, bindings, machine);
  const kernels::Work work =
      chosen ? kernels::work_of(*chosen->variant, chosen->concrete->call(), amounts, machine, machine.threads)
             : kernels::work_of_meaning(amounts);
  return speeds.kernel_us + kernels::time_us(work, machine, machine.threads);
}

}  // namespace hetnn::backends::cpu
