// Layers between conversions become layers of integers: what quantizers write around each layer of a model is brought
// into the types of its values.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/infer.h"
#include "hetnn/passes/canonical/integers_of.h"
#include "hetnn/passes/canonical/layers_of_integers.h"
#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/canonical/steps_apart.h"
#include "hetnn/passes/integer_layers.h"
#include "hetnn/passes/tables.h"
#include "hetnn/passes/transposed.h"

namespace hetnn::passes::canonical {
namespace {

const ops::Quant& result_of(const Match& m) { return *quant_of(*m.root()->output()); }

// The layer whose result is quantized and that nobody else reads; null where there is none.
ir::Node* layer_of(const Match& m) {
  const ir::Value& y = *m.value("y");
  ir::Node* layer = y.type().quant ? nullptr : y.producer();
  return layer && layer->outputs().size() == 1 && y.uses().size() == 1 ? layer : nullptr;
}

// A layer that can be one of integers, and what it writes is quantized.
bool is_between_conversions(const Match& m) {
  const ir::Node* layer = layer_of(m);
  return layer && reads_integers(*layer, m.root()->output()->dtype());
}

Rule layer() {
  return {
      .name = "layer_of_integers",
      .equation =
          "quantize(f(dequantize(x), ...)) = f(x, ...) on the integers, a bias as integers at the scale of "
          "the sums",
      .pattern = op("quantize", {any("y")}),
      .guards = {{"y is read by nothing else; f is a layer that accelerators have or a function of one value, and its "
                  "operands are reals of integers of the result's type, i8 or i16, or i8 weights, whose scales are "
                  "those of filters, or numbers; weights and biases of normalizations are constants",
                  is_between_conversions}},
      .exactness = "as quantized types mean it; a bias of reals moves by half a step of the sums at most",
      .rewrite = [](const Match& m, Build& build) -> ir::Value* {
        const ir::Node& layer = *layer_of(m);
        std::vector<ir::Value*> inputs = integer_inputs(layer, m.root()->output()->dtype(), build);
        return inputs.empty() ? nullptr : on_integers(layer, std::move(inputs), result_of(m), build);
      },
      .quantized = true,
      .steps_apart =
          [](const Match& m) {
            // A model that names the rounding of its integers has integers there.
            const bool stated = m.root()->attrs().contains(ops::kQuantRounding);
            return stated ? 0 : steps_apart_of_sums(*layer_of(m), result_of(m));
          }};
}

// The mean over the pixels of a map, whose axes are as `mean` says.
bool is_mean_of_pixels(const Match& m) {
  const ir::Node* layer = layer_of(m);
  if (!layer || layer->op().name != "mean" || layer->input(0)->rank() != 4) return false;
  const ir::Value* x = integers_of(layer->input(0));
  return x && x->dtype() == m.root()->output()->dtype() && ops::reduced_axes(layer->call()) == std::vector<int>{2, 3};
}

Rule mean() {
  return {.name = "mean_of_integers",
          .equation = "quantize(mean(dequantize(x); height, width)) = adaptive_avg_pool2d(x; 1, 1) on the integers",
          .pattern = op("quantize", {any("y")}),
          .guards = {{"y is the mean over height and width of reals of integers of the result's type, and nothing else "
                      "reads it",
                      is_mean_of_pixels}},
          .exactness = "as quantized types mean it",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            ops::Attrs attrs = ops::quant_attrs(result_of(m));
            attrs.emplace("output_size", std::vector<Dim>{1, 1});
            ir::Value* pooled = build.op("adaptive_avg_pool2d", {integers_of(layer_of(m)->input(0))}, std::move(attrs));
            return build.reshape(pooled, m.root()->output()->shape());
          },
          .quantized = true,
          .steps_apart =
              [](const Match& m) {
                const Shape& x = layer_of(m)->input(0)->shape();
                double pixels = 1;
                for (size_t axis = 2; axis < 4; ++axis)
                  pixels *= x[axis].is_static() ? static_cast<double>(x[axis].value()) : 1;
                return steps_apart_of_quotients(pixels);
              }};
}

Rule bounded() {
  return {.name = "quantize_before_bounds",
          .equation = "quantize(f(x)) = f(quantize(x)) where f is relu or clamp",
          .pattern = op("quantize", {any("y")}),
          .guards = {{"y is f's, and nothing else reads it",
                      [](const Match& m) {
                        const ir::Node* layer = layer_of(m);
                        return layer && bounds(*layer);
                      }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            if (build.graph().is_output(m.value("y"))) return nullptr;
            const ir::Node& layer = *layer_of(m);
            const ops::Attrs quant = ops::quant_attrs(result_of(m));
            ops::Attrs attrs = layer.attrs();
            attrs.insert(quant.begin(), quant.end());
            return build.op(layer.op().name, {build.op("quantize", {layer.input(0)}, m.root()->attrs())},
                            std::move(attrs));
          },
          .quantized = true};
}

Rule moved() {
  return {.name = "quantize_before_movement",
          .equation = "quantize(f(x)) = f(quantize(x)) where f moves values or takes the largest of windows",
          .pattern = op("quantize", {any("y")}),
          .guards = {{"y is f's, and nothing else reads it",
                      [](const Match& m) {
                        const ir::Node* layer = layer_of(m);
                        return layer && moves(*layer);
                      }},
                     {"the result has one scale", [](const Match& m) { return result_of(m).per_tensor(); }}},
          .exactness = "bit for bit; NaN, which integers lack, may have been the largest",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            if (build.graph().is_output(m.value("y"))) return nullptr;
            const ir::Node& layer = *layer_of(m);
            ir::Value* x = build.op("quantize", {layer.input(0)}, m.root()->attrs());
            ops::Attrs attrs = layer.attrs();
            if (!layer.op().has(ops::Trait::movement)) attrs.merge(ops::quant_attrs(result_of(m)));
            return build.op(layer.op().name, {x}, std::move(attrs));
          },
          .quantized = true};
}

// Weights keep their scales where the axis along which these lie stays the first.
bool may_move_first(const Match& m) {
  const ir::Value& x = *m.value("x");
  const ops::Quant& quant = *quant_of(x);
  if (!x.producer() || !x.producer()->is_constant()) return quant.per_tensor();
  const Shape& to = m.root()->output()->shape();
  const bool keeps_first = quant.axis == 0 && !to.empty() && x.rank() > 0 && x.shape()[0] == to[0];
  return m.root()->op().name == "reshape" && is_static(to) && (quant.per_tensor() || keeps_first);
}

Rule moved_first() {
  return {.name = "movement_before_dequantize",
          .equation = "f(dequantize(x)) = dequantize(f(x)) where f is reshape, permute or slice",
          .pattern = one_of({"reshape", "permute", "slice"}, {op("dequantize", {any("x")})}),
          .guards = {{"x has one scale, or is a constant that a reshape leaves its first axis, that of its scales",
                      may_move_first}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            ir::Value* x = m.value("x");
            ir::Value* moved = nullptr;
            if (x->producer() && x->producer()->is_constant())
              moved = build.constant(m.tensor("x")->reshaped(evaluate(m.root()->output()->shape(), {})), *quant_of(*x));
            else
              moved = build.op(m.root()->op().name, {x}, m.root()->attrs());
            return build.op("dequantize", {moved});
          },
          .quantized = true};
}

// Follows a node of one operator with one number as its other operand; null where there is something else.
const ir::Value* behind(const ir::Value* value, std::string_view op, double& number) {
  const ir::Node* node = value ? value->producer() : nullptr;
  if (!node || node->op().name != op) return nullptr;
  for (const size_t at : {size_t{1}, size_t{0}}) {
    const Tensor* constant = node->constant_input(at);
    const std::optional<double> one = constant ? single_value(*constant) : std::nullopt;
    if (!one) continue;
    number = *one;
    return node->input(1 - at);
  }
  return nullptr;
}
const ir::Value* behind(const ir::Value* value, std::string_view op) {
  const ir::Node* node = value ? value->producer() : nullptr;
  return node && node->op().name == op ? node->input(0) : nullptr;
}

// What is written out as clamp(round(y / scale) + zero point), or with a product by 1 / scale as PT2E does it; integers
// without a sign have their highest bit turned behind that.
struct WrittenOut {
  ir::Value* reals = nullptr;
  bool exact = false;  // a quotient, as quantize means it
};
WrittenOut written_out_of(const Match& m) {
  const ops::Quant& quant = result_of(m);
  const ir::Value* cast = m.value("q");
  double turn = 0, zero = 0, factor = 0;
  const ir::Value* turned = behind(cast, "bitwise_xor", turn);
  const bool is_unsigned = turned && turn == 128 && turned->dtype() == DType::u8;
  if (is_unsigned) cast = turned;
  const ir::Value* clamped = behind(cast, "cast");
  const ir::Value* sum = behind(clamped, "clamp");
  if (!sum || !quant.per_tensor() || cast->dtype() != (is_unsigned ? DType::u8 : DType::i8)) return {};
  const double shift = is_unsigned ? 128 : 0;
  const ir::Node& bounds = *clamped->producer();
  if (bounds.real("min") != -128 + shift || bounds.real("max") != 127 + shift) return {};
  const ir::Value* steps = behind(sum, "add", zero);
  if (!steps) steps = sum;
  const ir::Value* scaled = behind(steps, "round");
  const ir::Value* y = behind(scaled, "div", factor);
  const bool exact = y && scaled->producer()->input(0) == y;
  const auto scale = static_cast<float>(quant.scale());
  if (!exact) y = behind(scaled, "mul", factor);
  const float wanted = exact ? scale : static_cast<float>(1 / quant.scale());
  if (!y || y->dtype() != DType::f32 || zero != quant.zero_point() + shift || static_cast<float>(factor) != wanted)
    return {};
  return {const_cast<ir::Value*>(y), exact};
}

// Whether a layer writes a value, maybe moved or bounded.
bool comes_from_layer(const ir::Value* value) {
  for (int depth = 0; depth < 8; ++depth) {
    const ir::Node* node = value ? value->producer() : nullptr;
    if (!node || node->outputs().size() != 1 || node->inputs().empty()) return false;
    if (!bounds(*node) && !moves(*node)) return computes(*node);
    value = node->input(0);
  }
  return false;
}

Rule written_out() {
  return {.name = "quantize_from_arithmetic",
          .equation = "bitcast(clamp(round(y / scale) + zero point)) = quantize(y), or with y (1 / scale)",
          .pattern = op("bitcast", {any("q")}),
          .guards = {{"scale and zero point are the result's; with a product y is what a layer computes",
                      [](const Match& m) {
                        if (!m.root()->output()->type().quant) return false;
                        const WrittenOut found = written_out_of(m);
                        return found.reals && (found.exact || comes_from_layer(found.reals));
                      }}},
          .exactness = "bit for bit; with a product a y between two integers to the last bit may go to the other",
          .rewrite =
              [](const Match& m, Build& build) {
                return build.op("quantize", {written_out_of(m).reals}, ops::quant_attrs(result_of(m)));
              },
          .quantized = true,
          .steps_apart = [](const Match& m) { return written_out_of(m).exact ? 0 : steps_apart_of_reciprocals(); }};
}

Rule never_nan() {
  return {.name = "integers_are_no_nan",
          .equation = "isnan(dequantize(x)) ? c : dequantize(x) = dequantize(x)",
          .pattern = op("where", {op("ne", {any("x"), any("x")}), any("c"), any("x")}),
          .guards = {kShapedLikeX,
                     {"x stands for integers", [](const Match& m) { return integers_of(m.value("x")) != nullptr; }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build&) { return m.value("x"); },
          .quantized = true};
}

// Its reshape or permutation, which nobody else reads; null where it is something else.
const ir::Node* moved_argument_of(const ir::Node& node) {
  const ir::Value* x = argument_of(node);
  const ir::Node* movement = x ? x->producer() : nullptr;
  const bool moves = movement && (movement->op().name == "reshape" || movement->op().name == "permute");
  const bool counts = moves && movement->input(0)->rank() > 0 && x->uses().size() == 1;
  return counts && x->type().quant && x->type().quant->per_tensor() ? movement : nullptr;
}

std::vector<std::string_view> elementwise() {
  std::vector<std::string_view> out;
  for (const ops::OpDef* def : ops::OpTable::global().all()) {
    if (def->has(ops::Trait::elementwise)) out.push_back(def->name);
  }
  return out;
}

Rule function_before_movement() {
  return {
      .name = "function_before_movement",
      .equation = "f(reshape(x)) = reshape(f(x)) on integers, permutations likewise",
      .pattern = one_of(elementwise()),
      .guards = {{"f is a function of one value, other operands being numbers, and its result has one scale; nothing "
                  "else reads what is moved",
                  [](const Match& m) {
                    const ops::Quant* quant = quant_of(*m.root()->output());
                    return quant && quant->per_tensor() && moved_argument_of(*m.root()) != nullptr;
                  }}},
      .exactness = "bit for bit",
      .rewrite = [](const Match& m, Build& build) -> ir::Value* {
        const ir::Node& movement = *moved_argument_of(*m.root());
        if (build.graph().is_output(movement.output())) return nullptr;
        std::vector<ir::Value*> inputs = m.root()->inputs();
        // Numbers of a rank above that of x would give the result theirs.
        for (ir::Value*& input : inputs)
          input = input == movement.output()                  ? movement.input(0)
                  : input->rank() > movement.input(0)->rank() ? build.reshape(input, {1})
                                                              : input;
        ops::Attrs attrs = movement.attrs();
        for (std::string_view name : ops::kQuantAttrs) attrs.erase(std::string(name));
        return build.op(movement.op().name, {build.like(*m.root(), inputs)}, std::move(attrs));
      },
      .quantized = true};
}

// With a node that reads two of its values, and one that accelerators may lack.
bool is_composed(const Composition& found) {
  const auto joins = [](const ir::Node* node) { return argument_of(*node) == nullptr; };
  const auto has_no_layer = [](const ir::Node* node) { return node->op().primitive == ops::Primitive::none; };
  return std::ranges::any_of(found.nodes, joins) && std::ranges::any_of(found.nodes, has_no_layer);
}

Rule composed() {
  return {
      .name = "functions_as_table",
      .equation = "f(x, g(x), ...) = table[q + 128], of each integer q of x what f and g make of it, step by step",
      .pattern = one_of(elementwise()),
      .guards = {{"all values are i8 with a scale; f, g, ... are elementwise, other operands being numbers; what is "
                  "between is read by nothing else; some node reads two of the values, and some is no layer that "
                  "accelerators have",
                  [](const Match& m) {
                    const ir::Value& y = *m.root()->output();
                    return y.dtype() == DType::i8 && y.type().quant.has_value();
                  }}},
      .exactness = "bit for bit",
      .rewrite = [](const Match& m, Build& build) -> ir::Value* {
        const Composition found = composition_of(build.graph(), *m.root());
        if (!is_composed(found)) return nullptr;
        ops::Attrs attrs = ops::quant_attrs(result_of(m));
        attrs.emplace("table", table_of(found.nodes, *found.argument));
        return build.op("lookup", {found.argument}, std::move(attrs));
      },
      .quantized = true};
}

Rule there_and_back() {
  return {.name = "quantize_of_dequantize",
          .equation = "quantize(dequantize(x)) = x at the scale of the result",
          .pattern = op("quantize", {op("dequantize", {any("x")})}),
          .guards = {{"x is of the result's element type",
                      [](const Match& m) { return m.value("x")->dtype() == m.root()->output()->dtype(); }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            ir::Value* x = m.value("x");
            if (x->type() == m.root()->output()->type()) return x;
            return build.op("identity", {x}, ops::quant_attrs(result_of(m)));
          },
          .quantized = true};
}

Rule bits_twice() {
  return {
      .name = "bitcast_twice",
      .equation = "bitcast(bitcast(x)) = bitcast(x)",
      .pattern = op("bitcast", {op("bitcast", {any("x")}, "inner")}),
      .guards = {{"no type is bool, of which bits are lost",
                  [](const Match& m) {
                    return m.root()->output()->dtype() != DType::boolean &&
                           m.node("inner")->output()->dtype() != DType::boolean;
                  }}},
      .exactness = "bit for bit",
      .rewrite = [](const Match& m, Build& build) { return build.op("bitcast", {m.value("x")}, m.root()->attrs()); },
      .quantized = true};
}

Rule bits_as_they_are() {
  return {.name = "bitcast_to_own_type",
          .equation = "bitcast(x) = x",
          .pattern = op("bitcast", {any("x")}),
          .guards = {kShapedLikeX},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build&) { return m.value("x"); },
          .quantized = true};
}

Rule toggled_twice() {
  return {.name = "bits_toggled_twice",
          .equation = "(x xor c) xor c = x",
          .pattern = op("bitwise_xor", {op("bitwise_xor", {any("x"), constant("c")}), constant("d")}),
          .guards = {kShapedLikeX,
                     {"c and d are one number",
                      [](const Match& m) {
                        const auto c = single_value(*m.tensor("c")), d = single_value(*m.tensor("d"));
                        return c && d && *c == *d;
                      }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build&) { return m.value("x"); }};
}

// Products with weights as layers, before folding makes reals of the weights.
bool is_matrix(const Match& m) { return m.value("w")->rank() == 2 && m.value("x")->rank() >= 2; }
constexpr Guard kMatrix = {"w is a matrix, and x has two axes or more", is_matrix};

bool is_turned(const Match& m) {
  const std::vector<Dim>& perm = m.node("turned")->integers("perm");
  return is_matrix(m) && perm.size() == 2 && perm[0] != Dim(0) && perm[0] != Dim(-2);
}

Rule linear_from_turned() {
  return {.name = "linear_of_integers_turned",
          .equation = "x permute(dequantize(w)) = linear(x, dequantize(w))",
          .pattern = op("matmul", {any("x"), op("permute", {op("dequantize", {constant("w")}, "reals")}, "turned")}),
          .guards = {{"w is a matrix whose axes the permutation turns, and x has two axes or more", is_turned}},
          .exactness = "the order of sums may differ",
          .rewrite =
              [](const Match& m, Build& build) {
                return build.op("linear", {m.value("x"), m.value("reals")});
              },
          .quantized = true};
}

Rule linear_from_product() {
  return {.name = "linear_of_integers",
          .equation = "x dequantize(w) = linear(x, dequantize(permute(w)))",
          .pattern = op("matmul", {any("x"), op("dequantize", {constant("w")})}),
          .guards = {kMatrix,
                     {"w has one scale, or one for each column",
                      [](const Match& m) {
                        const ops::Quant& quant = *quant_of(*m.value("w"));
                        return quant.per_tensor() || quant.axis == 1;
                      }}},
          .exactness = "the order of sums may differ",
          .rewrite =
              [](const Match& m, Build& build) {
                ops::Quant quant = *quant_of(*m.value("w"));
                quant.axis = 0;
                ops::Attrs attrs = ops::quant_attrs(quant);
                attrs.emplace("perm", std::vector<Dim>{1, 0});
                ir::Value* turned = build.op("permute", {m.value("w")}, std::move(attrs));
                return build.op("linear", {m.value("x"), build.op("dequantize", {turned})});
              },
          .quantized = true};
}

Rule linear_with_bias() {
  return {.name = "bias_of_integers",
          .equation = "linear(x, dequantize(w)) + b = linear(x, dequantize(w), b)",
          .pattern = op(
              "add", {exclusive(op("linear", {any("x"), op("dequantize", {any("w")}, "reals")}, "layer")), any("b")}),
          .guards = {{"the layer has no bias, and b is one for each of its filters, a constant or the reals of one",
                      [](const Match& m) {
                        const ir::Node& layer = *m.node("layer");
                        const ir::Value& b = *m.value("b");
                        const ir::Value* source = integers_of(&b) ? integers_of(&b) : &b;
                        const bool fixed = source->producer() && source->producer()->is_constant();
                        return fixed && (layer.inputs().size() < 3 || !layer.input(2)) && b.rank() == 1 &&
                               b.shape()[0] == m.value("w")->shape()[0];
                      }}},
          .exactness = "one rounding less",
          .rewrite =
              [](const Match& m, Build& build) {
                return build.op("linear", {m.value("x"), m.value("reals"), m.value("b")});
              },
          .quantized = true};
}

Rule transposed_layer() {
  return {.name = "transposed_integers_as_phases",
          .equation =
              "conv_transpose2d(x, w; stride s) = pixels of conv2d(x, taps of w at i, i + s, ... for each phase i < s) "
              "on the integers",
          .pattern = op("conv_transpose2d", {any("x"), constant("w"), optional_constant("b")}),
          .guards = {{"x is quantized", [](const Match& m) { return quant_of(*m.value("x")) != nullptr; }}},
          .exactness = "bit for bit: the same sums of integers",
          .rewrite = [](const Match& m, Build& build) { return as_phases(*m.root(), build); },
          .quantized = true};
}

}  // namespace

const RuleSet& quantized() {
  static const RuleSet set = {"quantized",
                              "Conversions around layers become the types of their values.",
                              {toggled_twice(), bits_twice(), bits_as_they_are(), written_out(), linear_from_turned(),
                               linear_from_product(), linear_with_bias(), never_nan(), there_and_back(), moved_first(),
                               bounded(), moved(), mean(), bilinear_of_integers(), layer(), slopes_of_integers(),
                               function_before_movement(), composed(), transposed_layer()}};
  return set;
}

}  // namespace hetnn::passes::canonical
