// Collects every reason why a node does not fit a spec's table of operators.
#include "hetnn/target/op_limits.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/ir/text.h"

namespace hetnn::target {
namespace {

std::string dtype_list(const std::vector<DType>& dtypes) {
  std::string out;
  for (DType dtype : dtypes) out += text(out.empty() ? "" : ", ", dtype_name(dtype));
  return out;
}

void check_types(const ir::Node& node, std::string_view device, const OpLimits& limits, Support& support) {
  const ops::OpDef& op = node.op();
  auto check = [&](std::string_view which, const ir::Value& value) {
    // The integers of a bias are those of the sums, wherever i8 is computed.
    const DType dtype = value.dtype() == DType::i32 && value.type().quant ? DType::i8 : value.dtype();
    if (dtype == DType::i8 && !value.type().quant) {
      support.reasons.push_back({text(op.name, "_quantized"), ops::to_string(value.type()), "i8 with a scale",
                                 text(device, " computes i8 as quantized reals; '", which, "' has no scale")});
    }
    if (value.type().quant && !value.type().quant->per_tensor() &&
        !(value.producer() && value.producer()->is_constant())) {
      support.reasons.push_back({text(op.name, "_scales"), ops::to_string(value.type()), "one scale",
                                 text(device, " has one scale for what is computed; '", which, "' has several")});
    }
    if (std::find(limits.dtypes.begin(), limits.dtypes.end(), dtype) == limits.dtypes.end()) {
      support.reasons.push_back({text(op.name, "_dtype"), std::string(dtype_name(value.dtype())),
                                 dtype_list(limits.dtypes),
                                 text(device, " computes ", op.name, " in ", dtype_list(limits.dtypes), "; '", which,
                                      "' is ", dtype_name(value.dtype()))});
    }
    if (limits.max_rank > 0 && value.rank() > limits.max_rank) {
      support.reasons.push_back(
          {text(op.name, "_rank"), std::to_string(value.rank()), text("at most ", limits.max_rank),
           text(device, " takes tensors of rank up to ", limits.max_rank, "; '", which, "' has rank ", value.rank())});
    }
  };
  // Weights and biases of a normalization of integers are reals.
  const bool of_integers = op.primitive == ops::Primitive::normalize && node.input(0)->type().quant;
  for (const ir::Value* input : node.inputs()) {
    const bool is_real = input && input->dtype() == DType::f32 && input->producer() && input->producer()->is_constant();
    if (input && !(of_integers && is_real)) check(input->name(), *input);
  }
  for (const ir::Value* output : node.outputs()) check(output->name(), *output);
}

void check_metrics(const ir::Node& node, std::string_view device, const OpLimits& limits, const Bindings& bindings,
                   Support& support) {
  if (!node.op().metrics || limits.limits.empty()) return;
  for (const ops::Metric& metric : node.op().metrics(node.call())) {
    const auto value = static_cast<double>(metric.value.evaluate(bindings));
    auto compare = [&](std::string_view suffix, bool upper) {
      auto at = limits.limits.find(text(metric.name, suffix));
      if (at == limits.limits.end() || (upper ? value <= at->second : value >= at->second)) return;
      support.reasons.push_back(
          {text(node.op().name, "_", metric.name, suffix), text(value),
           text(upper ? "at most " : "at least ", at->second),
           text(device, " needs ", metric.name, upper ? " <= " : " >= ", at->second, "; it is ", value)});
    };
    compare("_max", true);
    compare("_min", false);
  }
}

}  // namespace

void check_metric_names(std::string_view device, const OpLimitsTable& table) {
  for (const auto& [name, entry] : table) {
    if (entry.limits.empty()) continue;
    const ops::OpDef& op = ops::OpTable::global().get(name);
    const ir::Graph sample = ir::parse_sample(op.samples.front());
    std::vector<ops::Metric> metrics;
    if (op.metrics) metrics = op.metrics(sample.outputs().front()->producer()->call());
    for (const auto& [limit, bound] : entry.limits) {
      const std::string_view metric = std::string_view(limit).substr(0, limit.size() - 4);  // less _max or _min
      if (std::any_of(metrics.begin(), metrics.end(), [&](const ops::Metric& m) { return m.name == metric; })) continue;
      std::string known;
      for (const ops::Metric& m : metrics) known += text(known.empty() ? "" : ", ", m.name);
      throw InvalidModel(text(device, ": ops.", name, ".limits.", limit, " bounds '", metric, "'; ", name,
                              known.empty() ? " has no metrics" : " has the metrics " + known, "."));
    }
  }
}

Support check_limits(const ir::Node& node, std::string_view device_class, std::string_view device,
                     const OpLimitsTable& table, const Bindings& bindings) {
  Support support;
  const ops::OpDef& op = node.op();
  auto at = table.find(op.name);
  if (at == table.end()) {
    support.reasons.push_back({text(op.name, "_missing"), std::string(op.name), "an operator of the device",
                               text(device, " has no operator ", op.name)});
  } else {
    check_types(node, device, at->second, support);
    check_metrics(node, device, at->second, bindings, support);
  }
  for (const ops::Constraint& constraint : op.constraints) {
    if (constraint.device_class != device_class) continue;
    if (auto violation = constraint.violation(node.call())) {
      support.reasons.push_back(
          {std::string(constraint.label), violation->first, violation->second, std::string(constraint.text)});
    }
  }
  return support;
}

}  // namespace hetnn::target
