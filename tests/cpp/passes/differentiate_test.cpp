// Derivatives of every operator, in f64, against differences of the operator itself.
#include "hetnn/passes/differentiate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ir/interpret.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"
#include "hetnn/passes/gradient_rules.h"

namespace hetnn::passes {
namespace {

using testing::HasSubstr;

std::string in_f64(std::string_view sample) {
  std::string out(sample);
  for (size_t at = 0; (at = out.find("f32[", at)) != std::string::npos;) out.replace(at, 3, "f64");
  return out;
}

// No two alike within a range, none at a kink.
double number_in(double low, double high, int64_t k) {
  return low + (high - low) * std::fmod(0.137 + 0.61803398875 * static_cast<double>(k), 1.0);
}

struct Range {
  double low, high;
};
// Where functions have values: everywhere, of positive numbers, below 1, above 1.
constexpr Range kRanges[] = {{-0.93, 0.91}, {0.12, 0.95}, {1.1, 2.6}};

Tensor filled(const ir::Value& input, size_t place, const Bindings& sizes, Range range, int64_t integers) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(input.dtype(), evaluate(input.shape(), sizes), &data);
  std::vector<double> numbers;
  for (int64_t k = 0; k < out.elems(); ++k)
    numbers.push_back(is_float(input.dtype()) ? number_in(range.low, range.high, k + 37 * static_cast<int64_t>(place))
                                              : static_cast<double>(k % integers));
  ops::write_as<double>({input.dtype(), out.shape(), data}, numbers);
  return out;
}

Tensor moved(const Tensor& x, int64_t at, double by) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(x.dtype(), x.shape(), &data);
  std::ranges::copy(x.span(), data);
  reinterpret_cast<double*>(data)[at] += by;
  return out;
}

// Adds the sum of all real results, every element times a factor of its own, as the graph's last output.
ir::Value* add_sum(ir::Graph& graph) {
  ir::Rewriter rewriter(graph);
  ir::Value* total = nullptr;
  for (ir::Value* y : std::vector<ir::Value*>(graph.outputs())) {
    if (y->dtype() != DType::f64) continue;
    ir::Value* count = rewriter.add("arange", {}, {{"end", elements(y->shape())}, {"dtype", DType::i64}});
    ir::Value* factors = rewriter.add("sin", {rewriter.add("cast", {count}, {{"to", DType::f64}})});
    ir::Value* flat = rewriter.add("reshape", {y}, {{"shape", std::vector<Dim>{elements(y->shape())}}});
    ir::Value* sum = rewriter.add("sum", {rewriter.add("mul", {flat, factors})});
    total = total ? rewriter.add("add", {total, sum}) : sum;
  }
  if (total) rewriter.add_output(total, "total");
  return total;
}

enum class Found : uint8_t { nothing_real, none, values_refused, equal };

// What comes of the derivatives at inputs from a range.
Found compare(const ir::Graph& graph, const ir::Graph& whole, size_t first, const std::vector<size_t>& by, Range range,
              int64_t integers) {
  std::vector<Tensor> inputs, found;
  for (const ir::Value* input : graph.inputs())
    inputs.push_back(filled(*input, inputs.size(), graph.hints(), range, integers));
  try {
    found = ir::interpret(whole, inputs);
  } catch (const InvalidModel&) {
    return Found::values_refused;
  }
  const auto total = [&](size_t input, int64_t at, double step) {
    std::vector<Tensor> other = inputs;
    other[input] = moved(inputs[input], at, step);
    return ir::interpret(graph, other).back().values<double>()[0];
  };
  bool any = false;
  for (size_t k = 0; k < by.size(); ++k) {
    const Tensor& x = inputs[by[k]];
    EXPECT_EQ(found[first + k].shape(), x.shape());
    for (int64_t at = 0; at < x.elems(); at += std::max<int64_t>(1, x.elems() / 7)) {
      const double h = 1e-4;
      const auto central = [&](double step) { return (total(by[k], at, step) - total(by[k], at, -step)) / (2 * step); };
      const double near = central(h / 2), far = central(h), difference = (4 * near - far) / 3;
      if (!(std::abs(near - far) < 1e-3 * (1 + std::abs(near)))) continue;  // a kink, a jump, or no value
      any = true;
      EXPECT_NEAR(found[first + k].values<double>()[static_cast<size_t>(at)], difference,
                  1e-7 * (1 + std::abs(difference)))
          << "by input " << by[k] << ", element " << at << ", inputs from " << range.low << " to " << range.high;
    }
  }
  return any ? Found::equal : Found::values_refused;
}

Found check(std::string_view op, std::string_view sample) {
  ir::Graph graph;
  try {
    graph = ir::parse_sample(in_f64(sample));
  } catch (const InvalidModel&) {
    return Found::nothing_real;  // is not for f64
  }
  std::vector<size_t> by;
  by.reserve(graph.inputs().size());
  for (size_t k = 0; k < graph.inputs().size(); ++k)
    if (graph.inputs()[k]->dtype() == DType::f64) by.push_back(k);
  if (by.empty() || !add_sum(graph)) return Found::nothing_real;
  ir::Graph whole = graph.clone();
  ir::Rewriter rewriter(whole);
  std::vector<ir::Value*> xs;
  xs.reserve(by.size());
  for (const size_t k : by) xs.push_back(whole.inputs()[k]);
  try {
    for (ir::Value* part : differentiate(rewriter, whole.outputs().back(), xs)) rewriter.add_output(part);
  } catch (const Unsupported& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(std::string(op) + " '"), HasSubstr("operators that have none: ")));
    return Found::none;
  }
  ir::verify(whole);
  Found best = Found::values_refused;
  for (const Range& range : kRanges)
    for (const int64_t integers : {2, 1})
      if (const Found found = compare(graph, whole, graph.outputs().size(), by, range, integers);
          found == Found::equal) {
        best = found;
        break;
      }
  return best;
}

class Derivative : public testing::TestWithParam<std::string_view> {};

TEST_P(Derivative, IsWhatDifferencesSay) {
  const ops::OpDef& op = ops::OpTable::global().get(GetParam());
  bool compared = false, passes = false, real = false;
  for (const std::string_view sample : op.samples) {
    SCOPED_TRACE(sample);
    const Found found = check(op.name, sample);
    compared |= found == Found::equal;
    passes |= found == Found::equal || found == Found::values_refused;
    real |= found != Found::nothing_real;
  }
  EXPECT_EQ(compared, passes) << "no sample takes any of the inputs";
  EXPECT_TRUE(compared || !real || !gradient_rule(op.name)) << "the rule is of no sample";
}

std::vector<std::string_view> names() {
  std::vector<std::string_view> out;
  for (const ops::OpDef* op : ops::OpTable::global().all()) out.push_back(op->name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Every, Derivative, testing::ValuesIn(names()),
                         [](const auto& each) { return std::string(each.param); });

// The derivatives of a graph's last value by its inputs, which are one-dimensional and real.
std::vector<std::vector<double>> derivatives(std::string_view source, const std::vector<std::vector<double>>& at) {
  ir::Graph graph = ir::parse(source);
  ir::Rewriter rewriter(graph);
  const std::vector<ir::Value*> xs = graph.inputs();
  for (ir::Value* part : differentiate(rewriter, graph.outputs().back(), xs)) rewriter.add_output(part);
  ir::verify(graph);
  std::vector<Tensor> inputs;
  inputs.reserve(at.size());
  for (const auto& each : at) inputs.push_back(Tensor::of({static_cast<int64_t>(each.size())}, each));
  const std::vector<Tensor> results = ir::interpret(graph, inputs);
  std::vector<std::vector<double>> out;
  for (size_t k = results.size() - xs.size(); k < results.size(); ++k) {
    const auto values = results[k].values<double>();
    out.emplace_back(values.begin(), values.end());
  }
  return out;
}

using Rows = std::vector<std::vector<double>>;

TEST(Differentiate, WhatIsReadTwiceTakesBothParts) {
  EXPECT_EQ(derivatives(R"(graph @g {stage = imported} (%x: f64[2]) -> (%y) {
  %a = mul(%x, %x) : f64[2]
  %y = add(%a, %x) : f64[2]
})",
                        {{3, -1}}),
            (Rows{{7, -1}}));
}

TEST(Differentiate, WhatYDoesNotReadHasZeros) {
  EXPECT_EQ(derivatives("graph @g {stage = imported} (%x: f64[2], %z: f64[1]) -> (%y) {\n  %y = neg(%x) : f64[2]\n}",
                        {{3, -1}, {5}}),
            (Rows{{-1, -1}, {0}}));
}

TEST(Differentiate, AMeanOfAnOpenSizeIsDividedByIt) {
  const std::string graph = R"(graph @g {stage = imported, symbols = [n: 1..9 = 4]} (%x: f64[n]) -> (%y) {
  %s = mul(%x, %x) : f64[n]
  %y = mean(%s) {axes = [0]} : f64[]
})";
  EXPECT_EQ(derivatives(graph, {{1, 2, 3, 4}}), (Rows{{0.5, 1, 1.5, 2}}));
  EXPECT_EQ(derivatives(graph, {{1, 2}}), (Rows{{1, 2}}));
}

TEST(Differentiate, RowsOfManyMatricesMeetAWeightInOneProduct) {
  ir::Graph graph = ir::parse(R"(graph @g {stage = imported} (%x: f64[2,3,4], %w: f64[4,5]) -> (%y) {
  %y = matmul(%x, %w) : f64[2,3,5]
})");
  ir::Rewriter rewriter(graph);
  ir::Value* const xs[] = {graph.find_value("w")};
  EXPECT_EQ(differentiate(rewriter, graph.find_value("y"), xs)[0]->producer()->op().name, "matmul");  // and no sum
}

TEST(Differentiate, CastsPassAndIntegersDoNot) {
  EXPECT_EQ(derivatives(R"(graph @g {stage = imported} (%x: f64[2]) -> (%y) {
  %i = cast(%x) {to = i32} : i32[2]
  %r = cast(%i) {to = f64} : f64[2]
  %s = cast(%x) {to = f32} : f32[2]
  %t = cast(%s) {to = f64} : f64[2]
  %y = mul(%r, %t) : f64[2]
})",
                        {{3.5, 2.25}}),
            (Rows{{3, 2}}));
}

TEST(Differentiate, ByValuesThatDependOnOneAnotherEachIsAsIfTheOthersWereGiven) {
  ir::Graph graph = ir::parse(R"(graph @g {stage = imported} (%x: f64[1]) -> (%y) {
  %a = exp(%x) : f64[1]
  %y = mul(%a, %x) : f64[1]
})");
  ir::Rewriter rewriter(graph);
  ir::Value* const xs[] = {graph.find_value("x"), graph.find_value("a")};
  for (ir::Value* part : differentiate(rewriter, graph.find_value("y"), xs)) rewriter.add_output(part);
  const std::vector<Tensor> results = ir::interpret(graph, std::vector{Tensor::of<double>({1}, std::vector{2.0})});
  EXPECT_DOUBLE_EQ(results[1].values<double>()[0], std::exp(2.0));
  EXPECT_DOUBLE_EQ(results[2].values<double>()[0], 2.0);
}

TEST(Differentiate, AllNodesWithoutADerivativeAreNamedAtOnce) {
  const auto source = R"(graph @g {stage = imported} (%x: f64[3,3]) -> (%y) {
  %q, %r = qr(%x) : f64[3,3], f64[3,3] loc("decompose", "model.py":7)
  %u, %s, %v = svd(%q) : f64[3,3], f64[3], f64[3,3]
  %y = sum(%s) {axes = [0]} : f64[]
})";
  ir::Graph graph = ir::parse(source);
  ir::Rewriter rewriter(graph);
  ir::Value* const xs[] = {graph.find_value("x")};
  try {
    differentiate(rewriter, graph.find_value("y"), xs);
    FAIL();
  } catch (const Unsupported& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("svd 'u'; "), HasSubstr("qr 'decompose' at model.py:7. "),
                                    HasSubstr("that have none: ")));
  }
}

TEST(Differentiate, IntegersHaveNoDerivative) {
  ir::Graph graph = ir::parse("graph @g {stage = imported} (%x: i64[2]) -> (%y) {\n  %y = neg(%x) : i64[2]\n}");
  ir::Rewriter rewriter(graph);
  ir::Value* const xs[] = {graph.find_value("x")};
  EXPECT_THROW(differentiate(rewriter, graph.find_value("y"), xs), InvalidModel);
}

TEST(GradientRules, BindAsWritten) {
  const GradientRule rule = read_gradient_rule("f", "# why\nd(x) = a + b * -c if m == \"n\" and k != 2\ny = s[0:2]\n");
  ASSERT_EQ(rule.size(), 2U);
  EXPECT_TRUE(rule[0].is_gradient);
  EXPECT_EQ(rule[0].value.text, "+");
  EXPECT_EQ(rule[0].value.in[1].text, "*");
  EXPECT_EQ(rule[0].value.in[1].in[1].kind, Term::Kind::negate);
  EXPECT_EQ(rule[0].condition.at(0).text, "and");
  EXPECT_FALSE(rule[1].is_gradient);
  EXPECT_EQ(rule[1].value.kind, Term::Kind::cut);
}

TEST(GradientRules, WhatCannotBeReadIsShown) {
  try {
    read_gradient_rule("f", "d(x) = a +\n");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the gradient rule of f: expected a name at"));
  }
}

}  // namespace
}  // namespace hetnn::passes
