// quantize and dequantize behind values, integers in place of constants.
#include "hetnn/passes/insert_conversions.h"

#include "hetnn/base/error.h"
#include "hetnn/base/stored.h"
#include "hetnn/ir/rewriter.h"

namespace hetnn::passes {
namespace {

ir::Value& value_of(ir::Graph& graph, const std::string& name) {
  ir::Value* value = graph.find_value(name);
  if (!value) throw InvalidModel(text("the graph has no value '", name, "' to be quantized."));
  return *value;
}

void convert(ir::Graph& graph, ir::Rewriter& rewriter, ir::Value& value, const ValueConversion& how,
             const Conversions& conversions) {
  const auto is_layer = [&](const ir::Node* node) { return node && conversions.layers.contains(node->name()); };
  const bool for_all = is_layer(value.producer());
  std::vector<ir::Use> readers;
  for (const ir::Use& use : value.uses()) {
    if (for_all || is_layer(use.node)) readers.push_back(use);
  }
  if (value.producer()) {
    rewriter.insert_after(value.producer());
  } else {
    const auto nodes = graph.nodes();
    rewriter.insert_before(nodes.size() > 0 ? *nodes.begin() : nullptr);
  }
  ir::Value* reals = &value;
  if (how.before) reals = rewriter.add("mul", {reals, rewriter.constant(*how.before)}, {}, value.name() + ".scaled");
  const ops::Type type{how.dtype, value.shape(), how.quant};
  reals = rewriter.add("quantize", {reals}, ops::quantize_attrs(type), value.name() + ".integers");
  reals = rewriter.add("dequantize", {reals}, {}, value.name() + (how.after ? ".scaled" : ".reals"));
  if (how.after) reals = rewriter.add("mul", {reals, rewriter.constant(*how.after)}, {}, value.name() + ".reals");
  for (const ir::Use& use : readers) rewriter.set_input(use.node, use.index, reals);
  for (size_t k = 0; for_all && k < graph.outputs().size(); ++k) {
    if (graph.outputs()[k] == &value) rewriter.set_output(k, reals);
  }
}

// The reals of codes of 4 bits, in the shape of what they replace.
ir::Value* reals_of(ir::Rewriter& rewriter, const LayerConstant& constant, const ir::Value& before) {
  std::byte* data = nullptr;
  Tensor codes = Tensor::zeros(DType::i4, constant.value.shape(), &data);
  for (const int8_t code : constant.value.values<int8_t>())
    *data++ = static_cast<std::byte>(stored_bits(DType::i4, int64_t{code}));
  ir::Value* value = rewriter.constant(std::move(codes), before.name() + ".codes");
  ir::Value* scales = rewriter.constant(constant.blocks->scales, before.name() + ".scales");
  value = rewriter.add("dequantize_blocks", {value, scales}, {{"axis", Dim(1)}, {"block", Dim(constant.blocks->size)}},
                       before.name() + ".reals");
  if (value->shape() == before.shape()) return value;
  return rewriter.add("reshape", {value}, {{"shape", before.shape()}}, before.name() + ".shaped");
}

void give_constant(ir::Graph& graph, ir::Rewriter& rewriter, const LayerConstant& constant) {
  ir::Node* layer = value_of(graph, constant.layer).producer();
  if (!layer || constant.index > layer->inputs().size())
    throw InvalidModel(text("'", constant.layer, "' reads no input ", constant.index, "."));
  const bool is_new = constant.index == layer->inputs().size();
  const ir::Value* before = layer->input(constant.index);
  rewriter.insert_before(layer);
  if (constant.blocks) {
    if (!before) throw InvalidModel(text("'", constant.layer, "' has no input ", constant.index, " to be codes."));
    return rewriter.set_input(layer, constant.index, reals_of(rewriter, constant, *before));
  }
  ir::Value* value =
      rewriter.constant(constant.value, before ? before->name() : layer->name() + ".bias", constant.quant);
  if (constant.quant) value = rewriter.add("dequantize", {value});
  if (!is_new) return rewriter.set_input(layer, constant.index, value);
  std::vector<ir::Value*> inputs = layer->inputs();
  inputs.push_back(value);
  const std::string name = layer->name();
  ir::Node* twin = rewriter.create(layer->op().name, std::move(inputs), layer->attrs(), name, layer->loc());
  rewriter.replace_uses(layer->output(), twin->output());
  rewriter.erase(layer);
  rewriter.rename(twin->output(), name);
}

}  // namespace

void insert_conversions(ir::Graph& graph, const Conversions& conversions) {
  ir::Rewriter rewriter(graph);
  for (const LayerConstant& constant : conversions.constants) give_constant(graph, rewriter, constant);
  for (const auto& [name, how] : conversions.values) convert(graph, rewriter, value_of(graph, name), how, conversions);
  rewriter.erase_dead();
  // Rules bring the layers into integers.
  graph.stage = ir::Stage::imported;
}

}  // namespace hetnn::passes
