// Sizes and work of nodes, and lookup of devices.
#include "hetnn/target/target.h"

#include <algorithm>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ir/symbols.h"

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
  // Of what windows cut off an axis something must be left.
  std::vector<Dim> sizes;
  for (const ir::Value* value : node.inputs()) {
    if (value) sizes.insert(sizes.end(), value->shape().begin(), value->shape().end());
  }
  for (const ir::Value* value : node.outputs()) sizes.insert(sizes.end(), value->shape().begin(), value->shape().end());
  ir::raise_to(1, sizes, {}, out);
  return out;
}

namespace {

// Sizes that stand as an example may be ones that no run has, and what is cut off an axis more than it is long.
int64_t elements_at(const Shape& shape, const Bindings& bindings) {
  return std::max<int64_t>(elements(shape).evaluate(bindings), 0);
}

}  // namespace

int64_t value_bytes(const ir::Value& value, const Bindings& bindings) {
  return elements_at(value.shape(), bindings) * dtype_bytes(value.dtype());
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
    const auto at_least_none = [&](const Dim& count) {
      return std::max(static_cast<double>(count.evaluate(bindings)), 0.0);
    };
    return {at_least_none(work.macs), at_least_none(work.flops)};
  }
  if (!node.op().has(ops::Trait::elementwise)) return {};
  return {0, static_cast<double>(elements_at(node.output()->shape(), bindings))};
}

}  // namespace hetnn::target
