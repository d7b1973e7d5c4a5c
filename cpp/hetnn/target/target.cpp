// Sizes and work of nodes, and lookup of devices.
#include "hetnn/target/target.h"

#include <set>

#include "hetnn/base/error.h"

namespace hetnn::target {

size_t Target::device_index(std::string_view device) const {
  std::string known;
  for (size_t k = 0; k < devices.size(); ++k) {
    if (devices[k]->name() == device) return k;
    known += (k ? ", " : "") + devices[k]->name();
  }
  throw InvalidModel(text("target '", name, "' has no device '", device, "'. Its devices are: ", known, "."));
}

Bindings trial_bindings(const ir::Node& node) {
  constexpr int64_t kTrialSize = 64;
  std::set<std::string> symbols;
  ops::collect_symbols(node.call(), symbols);
  Bindings out;
  for (const std::string& symbol : symbols) out[symbol] = kTrialSize;
  return out;
}

int64_t value_bytes(const ir::Value& value, const Bindings& bindings) {
  return elements(value.shape()).evaluate(bindings) * dtype_bytes(value.dtype());
}

int64_t bytes_touched(const ir::Node& node, const Bindings& bindings) {
  int64_t sum = 0;
  for (const ir::Value* input : node.inputs()) sum += input ? value_bytes(*input, bindings) : 0;
  for (const ir::Value* output : node.outputs()) sum += value_bytes(*output, bindings);
  return sum;
}

ConcreteWork work_of(const ir::Node& node, const Bindings& bindings) {
  if (node.op().work) {
    const ops::Work work = node.op().work(node.call());
    return {static_cast<double>(work.macs.evaluate(bindings)), static_cast<double>(work.flops.evaluate(bindings))};
  }
  if (!node.op().has(ops::Trait::elementwise)) return {};
  return {0, static_cast<double>(elements(node.output()->shape()).evaluate(bindings))};
}

}  // namespace hetnn::target
