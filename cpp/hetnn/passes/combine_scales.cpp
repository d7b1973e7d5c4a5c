// Gates and norms in the convolutions that read them.
#include <optional>
#include <utility>

#include "hetnn/passes/combine.h"
#include "hetnn/passes/numbers.h"

namespace hetnn::passes {
namespace {

bool is_f32(const Match& m) { return m.root()->output()->dtype() == DType::f32; }

constexpr Guard kF32 = {"the values are f32", is_f32};
constexpr Guard kPointwise = {"the convolution is 1x1, stride 1, without padding and groups",
                              [](const Match& m) { return is_pointwise(*m.root()); }};

Pattern convolution_of(Pattern x) {
  return op("conv2d", {exclusive(std::move(x)), constant("w"), optional_constant("b")});
}

// Which operand of a product with a gate is the gate: one factor for each image and channel of the other.
struct Gated {
  ir::Value* x;
  ir::Value* gate;
};
std::optional<Gated> gated(const Match& m) {
  for (const auto& [x, gate] : {Gated{m.value("p"), m.value("q")}, Gated{m.value("q"), m.value("p")}}) {
    const Shape& shape = x->shape();
    if (shape.size() == 4 && gate->shape() == Shape{shape[0], shape[1], 1, 1}) return Gated{x, gate};
  }
  return std::nullopt;
}

Rule gate_into_convolution() {
  return {.name = "gate_into_convolution",
          .equation = "conv2d(p q, w, b) = scaled_conv2d(p, w, q, b), or with p and q the other way round",
          .pattern = convolution_of(op("mul", {any("p"), any("q")})),
          .guards = {kF32,
                     kPointwise,
                     {"one of p and q is a gate: a factor for each image and channel of the other",
                      [](const Match& m) { return gated(m).has_value(); }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            const Gated operands = *gated(m);
            return build.op("scaled_conv2d", {operands.x, m.value("w"), operands.gate, m.value("b")});
          }};
}

// A constant of the norm as one value a channel.
ir::Value* of_channels(const Match& m, Build& build, std::string_view capture) {
  const Shape& x = m.value("x")->shape();
  const auto found = along_one_axis(*m.tensor(capture), x);
  const std::vector<int64_t> shape = {1, static_cast<int64_t>(found->values.size()), 1, 1};
  return build.constant(m.value("x")->dtype(), shape, found->values);
}

bool are_of_channels(const Match& m) {
  const Shape& x = m.value("x")->shape();
  const auto is_one = [&](std::string_view capture) {
    const auto found = along_one_axis(*m.tensor(capture), x);
    return found && found->axis == 1;
  };
  return m.root()->input(0)->shape() == x && is_one("s") && is_one("t");
}

// A norm without a relu is part of the weights already.
Rule norm_into_convolution() {
  return {.name = "norm_into_convolution",
          .equation = "conv2d(relu(x s + t), w, b) = scaled_conv2d(x, w, s, b, t; relu)",
          .pattern = convolution_of(
              op("relu", {exclusive(op("add", {exclusive(op("mul", {any("x"), constant("s")})), constant("t")}))})),
          .guards = {kF32, kPointwise, {"s and t vary along the channels only", are_of_channels}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            return build.op(
                "scaled_conv2d",
                {m.value("x"), m.value("w"), of_channels(m, build, "s"), m.value("b"), of_channels(m, build, "t")},
                {{"relu", true}});
          }};
}

}  // namespace

const RuleSet& scaling() {
  static const RuleSet set = {
      "scaling",
      "A gate or a norm in the launch of the convolution that reads it, on devices that run it.",
      {gate_into_convolution(), norm_into_convolution()}};
  return set;
}

}  // namespace hetnn::passes
