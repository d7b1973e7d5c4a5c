// Two convolutions as one layer that is computed in bands of rows.
#include <string>
#include <vector>

#include "hetnn/passes/combine.h"

namespace hetnn::passes {
namespace {

bool is_depthwise(const ir::Node& conv) {
  const Dim channels = conv.input(0)->shape()[1];
  return conv.integer("groups") == channels && conv.input(1)->shape()[0] == channels && channels != Dim(1);
}

bool is_f32(const Match& m) { return m.root()->output()->dtype() == DType::f32; }

Rule convolutions_in_bands() {
  return {.name = "convolutions_in_bands",
          .equation = "conv2d(f(conv2d(x, p, a)), d, b) = pointwise_depthwise_conv2d(x, p, d, a, b; f)",
          .pattern = op(
              "conv2d",
              {exclusive(one_of({"relu", "clamp", "silu", "hardswish"},
                                {exclusive(op("conv2d", {any("x"), constant("p"), optional_constant("a")}, "first"))},
                                "between")),
               constant("d"), optional_constant("b")}),
          .guards = {{"the values are f32", is_f32},
                     {"the first convolution is 1x1, stride 1, without padding and groups",
                      [](const Match& m) { return is_pointwise(*m.node("first")); }},
                     {"the second one is of a channel each", [](const Match& m) { return is_depthwise(*m.root()); }}},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            const ir::Node &second = *m.root(), &function = *m.node("between");
            ops::Attrs attrs = {{"function", std::string(function.op().name)}};
            for (const char* name : {"stride", "padding", "dilation"}) attrs.emplace(name, second.integers(name));
            if (function.op().name == "clamp")
              attrs.emplace("values", std::vector<double>{function.real("min"), function.real("max")});
            return build.op("pointwise_depthwise_conv2d",
                            {m.value("x"), m.value("p"), m.value("d"), m.value("a"), m.value("b")}, std::move(attrs));
          }};
}

}  // namespace

const RuleSet& banding() {
  static const RuleSet set = {
      "banding",
      "A 1x1 convolution and one a channel that reads it, on devices that run both in bands of rows, where what is "
      "between is larger than their caches.",
      {convolutions_in_bands()}};
  return set;
}

}  // namespace hetnn::passes
