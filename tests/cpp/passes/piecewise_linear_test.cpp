// Pieces of elementwise functions are what their formulas are.
#include "hetnn/passes/piecewise_linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hetnn/ir/text.h"
#include "hetnn/ops/elementwise/formula.h"

namespace hetnn::passes {
namespace {

// The function of x, or of x and a constant on either side.
std::string graph_of(const ops::FunctionDef& def, bool exchanged) {
  const std::string constant = def.operands == 1 ? "" : "  %c = constant() {value = f32[1] {0.75}} : f32[1]\n";
  const std::string operands = def.operands == 1 ? "%x" : exchanged ? "%c, %x" : "%x, %c";
  const std::string bounds =
      def.constant_count() == 2 ? text(" {", def.constants[0], " = -1.1, ", def.constants[1], " = 2.3}") : "";
  return "graph @g {stage = imported} (%x: f32[1]) -> (%y) {\n" + constant + "  %y = " + std::string(def.name) + "(" +
         operands + ")" + bounds + " : f32[1]\n}";
}

float value_of(const ir::Node& node, const ops::FunctionDef& def, float x, bool exchanged) {
  float c[2] = {};
  for (int k = 0; k < def.constant_count(); ++k)
    c[k] = static_cast<float>(node.real(def.constants[static_cast<size_t>(k)]));
  const auto function = *ops::called_function(node.call());
  return exchanged ? ops::apply<float>(function, 0.75F, x, c[0], c[1])
                   : ops::apply<float>(function, x, 0.75F, c[0], c[1]);
}

TEST(PiecewiseLinear, EqualsTheFormulaAtEveryBreakpoint) {
  std::vector<std::string_view> followed;
  for (const ops::FunctionDef& def : ops::functions()) {
    if (!ops::OpTable::global().find(def.name)) continue;  // a form of another
    for (const bool exchanged : {false, true}) {
      if (exchanged && def.operands == 1) continue;
      const ir::Graph graph = ir::parse(graph_of(def, exchanged));
      const ir::Value& y = *graph.outputs()[0];
      const auto found = as_functions(y, *graph.inputs()[0]);
      if (!found) continue;
      if (followed.empty() || followed.back() != def.name) followed.push_back(def.name);
      const PiecewiseLinear& f = found->each[0];
      const auto at = [&](double x) { return value_of(*y.producer(), def, static_cast<float>(x), exchanged); };
      for (size_t k = 0; k < f.knots.size(); ++k)
        EXPECT_EQ(at(f.knots[k]), static_cast<float>(f.at[k])) << def.name << " at " << f.knots[k];
      EXPECT_EQ(std::isnan(at(std::nan(""))), std::isnan(f.of_nan)) << def.name;
      for (double x = -8; x < 8; x += 0.0625) {
        size_t piece = 0;
        while (piece < f.knots.size() && f.knots[piece] < x) ++piece;
        const double line = piece < f.knots.size() && f.knots[piece] == x ? f.at[piece] : f.lines[piece](x);
        EXPECT_NEAR(at(x), line, 1e-6 * (1 + std::abs(line))) << def.name << " at " << x;
      }
    }
  }
  const std::vector<std::string_view> known = {
      "relu", "clamp", "leaky_relu", "hardsigmoid", "abs",     "neg",     "sign",
      "add",  "sub",   "mul",        "div",         "maximum", "minimum", "threshold_gradient"};
  EXPECT_EQ(followed, known);
}

TEST(PiecewiseLinear, ConditionsAreTheirFormulasEverywhere) {
  for (const char* name : {"eq", "ne", "gt", "ge", "lt", "le", "logical_and", "logical_or", "logical_xor"}) {
    const ir::Graph graph = ir::parse(R"(graph @g {stage = imported} (%x: f32[1]) -> (%y) {
  %c = constant() {value = f32[1] {0.75}} : f32[1]
  %y = )" + std::string(name) + R"((%x, %c) : bool[1]
})");
    const auto found = as_functions(*graph.outputs()[0], *graph.inputs()[0]);
    ASSERT_TRUE(found) << name;
    const PiecewiseLinear& f = found->each[0];
    for (const float x : {-1e30F, -1.0F, 0.0F, 0.5F, 0.75F, 0.750001F, 2.0F, 1e30F}) {
      const auto piece = static_cast<size_t>(std::lower_bound(f.knots.begin(), f.knots.end(), x) - f.knots.begin());
      const bool at_knot = piece < f.knots.size() && f.knots[piece] == x;
      const double value = at_knot ? f.at[piece] : f.lines[piece](x);
      EXPECT_EQ(value, ops::apply<float>(*ops::predicate_from_name(name), x, 0.75F)) << name << " at " << x;
    }
    EXPECT_EQ(f.of_nan, ops::apply<float>(*ops::predicate_from_name(name), std::nanf(""), 0.75F)) << name;
  }
}

}  // namespace
}  // namespace hetnn::passes
