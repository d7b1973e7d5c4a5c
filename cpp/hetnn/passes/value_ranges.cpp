// Interval arithmetic over a graph, operator by operator; what is not known here may be anything.
#include "hetnn/passes/value_ranges.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hetnn/ops/elementwise/formula.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes {
namespace {

using Operands = std::vector<Range>;

// More than the sums of any layer lose by rounding, as a share of them.
constexpr double kRoundings = 1e-3;

Range around_zero(double largest) { return {-largest, largest}; }

Range of_tensor(const Tensor& tensor) {
  if (!has_arithmetic(tensor.dtype())) return {};
  Range out = Range::none(false);
  for (double value : to_doubles(tensor))
    out = hull(out, std::isnan(value) ? Range::none(true) : Range{value, value, false});
  return out.empty() ? Range{} : out;
}

// The largest sum of the magnitudes in a row of the weights, times x, and the bias.
Range of_layer(const ir::Node& node, const Operands& in) {
  const Tensor* weight = node.constant_input(1);
  const Tensor* bias = node.input(2) ? node.constant_input(2) : nullptr;
  if (!weight || (node.input(2) && !bias) || weight->elems() == 0) return {};
  const std::vector<double> values = to_doubles(*weight);
  const size_t row = values.size() / static_cast<size_t>(weight->shape()[0]);
  double most = 0;
  for (size_t begin = 0; begin < values.size(); begin += row) {
    double sum = 0;
    for (size_t k = begin; k < begin + row; ++k) sum += std::abs(values[k]);
    most = std::max(most, sum);
  }
  const double largest = (most * in[0].largest() + (bias ? of_tensor(*bias).largest() : 0)) * (1 + kRoundings);
  return std::isnan(largest) ? Range{} : around_zero(largest);
}

using Meaning = Range (*)(const ir::Node&, const Operands&);

Range same(const ir::Node&, const Operands& in) { return in[0]; }
Range with_zero(const ir::Node&, const Operands& in) { return hull(in[0], {0, 0}); }
Range averaged(const ir::Node&, const Operands& in) {
  return {in[0].lo - std::abs(in[0].lo) * kRoundings, in[0].hi + std::abs(in[0].hi) * kRoundings};
}

// Of operators that are no elementwise functions, whose ranges their formulas say.
const std::map<std::string_view, Meaning>& meanings() {
  static const std::map<std::string_view, Meaning> table = {
      {"conv2d", of_layer},
      {"linear", of_layer},
      {"softmax",
       [](const ir::Node&, const Operands&) {
         return Range{0, 1 + kRoundings};
       }},
      {"concat",
       [](const ir::Node&, const Operands& in) {
         Range out = in[0];
         for (const Range& other : in) out = hull(out, other);
         return out;
       }},
      {"reshape", same},
      {"permute", same},
      {"slice", same},
      {"expand", same},
      {"identity", same},
      {"gather", with_zero},
      {"max_pool2d", same},
      {"avg_pool2d",
       [](const ir::Node& node, const Operands& in) {
         return hull(averaged(node, in), {0, 0});
       }},
      {"adaptive_avg_pool2d", averaged},
      {"mean", averaged},
      {"reduce_max", same},
      {"reduce_min", same},
      {"cast",
       [](const ir::Node& node, const Operands& in) { return is_float(node.output()->dtype()) ? in[0] : Range{}; }},
  };
  return table;
}

Range of_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return {0, 1};
    case DType::u8:
      return {0, 255};
    case DType::i8:
      return {-128, 127};
    case DType::i16:
      return {-32768, 32767};
    default:
      return {};
  }
}

Range of_function(const ir::Node& node, ops::Function function, const Operands& in) {
  Range constants[2];
  const ops::FunctionDef& def = ops::function_def(function);
  for (int k = 0; k < def.constant_count(); ++k)
    constants[k] = Range::constant(node.real(def.constants[static_cast<size_t>(k)]));
  return range_of(function, in[0], in[static_cast<size_t>(def.operands) - 1], constants[0], constants[1]);
}

}  // namespace

Ranges value_ranges(const ir::Graph& graph, const Magnitudes& inputs_within) {
  Ranges out;
  for (const ir::Value* input : graph.inputs()) out[input->name()] = of_type(input->dtype());
  for (const auto& [input, largest] : inputs_within) {
    Range& known = out[input];
    known = {std::max(known.lo, -largest), std::min(known.hi, largest)};
  }
  for (const ir::Node* node : graph.nodes()) {
    for (const ir::Value* output : node->outputs()) out[output->name()] = of_type(output->dtype());
    const ir::Value& first = *node->output();
    if (node->is_constant()) {
      if (!first.type().quant) out[first.name()] = of_tensor(node->tensor("value"));
      continue;
    }
    const std::optional<ops::Function> function = ops::called_function(node->call());
    const auto meaning = meanings().find(node->op().name);
    const auto plain = [](const ir::Value* value) { return !value || !value->type().quant; };
    if ((!function && meaning == meanings().end()) || !std::all_of(node->inputs().begin(), node->inputs().end(), plain))
      continue;
    Operands operands;
    for (const ir::Value* input : node->inputs()) operands.push_back(input ? out.at(input->name()) : Range{});
    if (!is_float(first.dtype()) || !plain(&first)) continue;
    const Range found = function ? of_function(*node, *function, operands) : meaning->second(*node, operands);
    out[first.name()] = stored(found, first.dtype());
  }
  return out;
}

}  // namespace hetnn::passes
