// Interval arithmetic over a graph, operator by operator; what is not known here may be anything.
#include "hetnn/passes/value_ranges.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "hetnn/passes/numbers.h"

namespace hetnn::passes {
namespace {

using Operands = std::vector<Range>;

constexpr double kInf = std::numeric_limits<double>::infinity();
// More than the sums of any layer lose by rounding, as a share of them.
constexpr double kRoundings = 1e-3;

Range around_zero(double largest) { return {-largest, largest}; }

Range hull(Range a, Range b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

// What rounding may add; the difference of infinities may be anything.
Range rounded(double lo, double hi) {
  if (std::isnan(lo) || std::isnan(hi)) return {};
  return {lo - std::abs(lo) * kRoundings, hi + std::abs(hi) * kRoundings};
}

Range product(Range a, Range b) {
  const double corners[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  if (std::any_of(std::begin(corners), std::end(corners), [](double c) { return std::isnan(c); })) return {};
  return {*std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners))};
}

Range of_tensor(const Tensor& tensor) {
  if (!has_arithmetic(tensor.dtype())) return {};
  Range out{kInf, -kInf};
  for (double value : to_doubles(tensor)) out = std::isnan(value) ? Range{} : hull(out, {value, value});
  return tensor.elems() == 0 ? Range{} : out;
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
Range unit(const ir::Node&, const Operands&) { return {0, 1}; }

const std::map<std::string_view, Meaning>& meanings() {
  static const std::map<std::string_view, Meaning> table = {
      {"conv2d", of_layer},
      {"linear", of_layer},
      {"relu",
       [](const ir::Node&, const Operands& in) {
         return Range{std::max(in[0].lo, 0.0), std::max(in[0].hi, 0.0)};
       }},
      {"leaky_relu",
       [](const ir::Node& node, const Operands& in) {
         const double slope = node.real("negative_slope");
         return hull(hull(in[0], {0, 0}), product(in[0], {slope, slope}));
       }},
      {"prelu", [](const ir::Node&, const Operands& in) { return hull(in[0], product(in[0], in[1])); }},
      {"clamp",
       [](const ir::Node& node, const Operands& in) {
         const double lo = node.real("min"), hi = node.real("max");
         return lo <= hi ? Range{std::clamp(in[0].lo, lo, hi), std::clamp(in[0].hi, lo, hi)} : Range{hi, hi};
       }},
      {"hardsigmoid", unit},
      {"sigmoid", unit},
      {"softmax", unit},
      {"tanh", [](const ir::Node&, const Operands&) { return around_zero(1); }},
      {"erf", [](const ir::Node&, const Operands&) { return around_zero(1); }},
      {"hardswish", with_zero},
      {"abs",
       [](const ir::Node&, const Operands& in) {
         return Range{0, in[0].largest()};
       }},
      {"neg",
       [](const ir::Node&, const Operands& in) {
         return Range{-in[0].hi, -in[0].lo};
       }},
      {"add", [](const ir::Node&, const Operands& in) { return rounded(in[0].lo + in[1].lo, in[0].hi + in[1].hi); }},
      {"sub", [](const ir::Node&, const Operands& in) { return rounded(in[0].lo - in[1].hi, in[0].hi - in[1].lo); }},
      {"mul", [](const ir::Node&, const Operands& in) { return product(in[0], in[1]); }},
      {"maximum",
       [](const ir::Node&, const Operands& in) {
         return Range{std::max(in[0].lo, in[1].lo), std::max(in[0].hi, in[1].hi)};
       }},
      {"minimum",
       [](const ir::Node&, const Operands& in) {
         return Range{std::min(in[0].lo, in[1].lo), std::min(in[0].hi, in[1].hi)};
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
      {"avg_pool2d", with_zero},
      {"adaptive_avg_pool2d", same},
      {"mean", same},
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

}  // namespace

double Range::largest() const { return std::max(std::abs(lo), std::abs(hi)); }

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
    const auto meaning = meanings().find(node->op().name);
    const auto plain = [](const ir::Value* value) { return !value || !value->type().quant; };
    if (meaning == meanings().end() || !std::all_of(node->inputs().begin(), node->inputs().end(), plain)) continue;
    Operands operands;
    for (const ir::Value* input : node->inputs()) operands.push_back(input ? out.at(input->name()) : Range{});
    if (is_float(first.dtype()) && plain(&first)) out[first.name()] = meaning->second(*node, operands);
  }
  return out;
}

}  // namespace hetnn::passes
