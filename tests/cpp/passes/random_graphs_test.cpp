// Random graphs of everything piecewise linear stay right, and become wholly legal, through both passes.
#include <gtest/gtest.h>

#include <random>

#include "hetnn/ir/rewriter.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"
#include "hetnn/passes/canonicalize.h"
#include "hetnn/passes/legalize.h"
#include "meaning.h"

namespace hetnn::passes {
namespace {

constexpr int64_t kChannels = 3, kHeight = 4, kWidth = 5;

// A graph of images [2,3,4,5], every node reading any earlier values.
class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed), rewriter_(graph_) {
    values_.push_back(rewriter_.add_input("x", {DType::f32, {2, kChannels, kHeight, kWidth}}));
    for (int k = 0; k < 9; ++k) values_.push_back(next());
    rewriter_.add_output(values_.back());
    rewriter_.add_output(any_value());
    rewriter_.erase_dead();
  }
  ir::Graph& graph() { return graph_; }

 private:
  size_t below(size_t bound) { return random_() % bound; }
  float real() { return static_cast<float>(random_() % 4001) / 1000 - 2; }
  ir::Value* any_value() { return values_[below(values_.size())]; }
  ir::Value* recent() { return values_[values_.size() - 1 - below(std::min<size_t>(2, values_.size()))]; }

  ir::Value* constant(std::vector<int64_t> shape, float low = -2) {
    int64_t count = 1;
    for (int64_t size : shape) count *= size;
    std::vector<float> numbers;
    for (int64_t k = 0; k < count; ++k) numbers.push_back(std::max(low, real()));
    return rewriter_.constant(Tensor::of(std::move(shape), numbers));
  }
  ir::Value* channel_constant() {
    switch (below(3)) {
      case 0:
        return constant({});
      case 1:
        return constant({kChannels, 1, 1});
      default:
        return constant({1, kChannels, 1, 1});
    }
  }

  ir::Value* next() {
    ir::Value* x = recent();
    const char* const binary[] = {"add", "sub", "maximum", "minimum"};
    const char* const with_constant[] = {"add", "sub", "mul", "maximum", "minimum"};
    switch (below(14)) {
      case 0:
        return rewriter_.add("conv2d", {x, constant({kChannels, kChannels, 3, 3}), constant({kChannels})},
                             {{"padding", std::vector<Dim>{1, 1}}});
      case 1:
        return rewriter_.add("conv2d", {x, constant({kChannels, 1, 1, 1})}, {{"groups", Dim(kChannels)}});
      case 2:
        return rewriter_.add("relu", {x});
      case 3:
        return rewriter_.add("prelu", {x, constant({below(2) ? kChannels : 1})});
      case 4:
        return rewriter_.add("leaky_relu", {x}, {{"negative_slope", static_cast<double>(real())}});
      case 5: {
        const double low = real();
        return rewriter_.add("clamp", {x}, {{"min", low}, {"max", low + 1}});
      }
      case 6:
        return rewriter_.add("abs", {x});
      case 7:
        return rewriter_.add("neg", {x});
      case 8:
        return rewriter_.add("hardsigmoid", {x});
      case 9:
        return rewriter_.add(binary[below(4)], {x, any_value()});
      case 10:
        return rewriter_.add(with_constant[below(5)], {x, channel_constant()});
      case 11:
        return rewriter_.add("batch_norm", {x, constant({kChannels}), constant({kChannels}), constant({kChannels}),
                                            constant({kChannels}, 0.3F)});
      case 12: {
        ir::Value* flat = rewriter_.add("reshape", {x}, {{"shape", std::vector<Dim>{2, kChannels, kHeight * kWidth}}});
        ir::Value* scaled = rewriter_.add("mul", {flat, constant({kChannels, 1})});
        return rewriter_.add("reshape", {scaled}, {{"shape", x->shape()}});
      }
      default:
        return rewriter_.add("maximum", {x, rewriter_.add("mul", {x, constant({})})});
    }
  }

  std::mt19937 random_;
  ir::Graph graph_;
  ir::Rewriter rewriter_;
  std::vector<ir::Value*> values_;
};

TEST(RandomGraphs, KeepTheirMeaningAndBecomeLegal) {
  const std::set<std::string, std::less<>> names = {"conv2d", "add", "relu", "slice", "reshape"};
  const Oracle oracle = {
      .supports =
          [&](const ir::Node& node) {
            if (!names.contains(node.op().name)) return false;
            const bool sum = node.op().has(ops::Trait::commutative);
            return !sum || node.input(0)->shape() == node.input(1)->shape();
          },
      .time_us = [](const ir::Node& node) { return node.op().has(ops::Trait::movement) ? 0.5 : 1.0; }};
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    RandomGraph made(seed);
    const ir::Graph& graph = made.graph();
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + ir::print(graph));
    const Inputs inputs = random_inputs(graph, seed);
    const std::vector<Tensor> want = run(graph, inputs);

    ir::Graph legal = graph.clone();
    canonicalize(legal);
    ir::verify(legal);
    ASSERT_LE(difference(want, run(legal, inputs)), 5e-6);
    LegalizeOptions options;
    for (const ir::Value* input : graph.inputs()) options.inputs_within.emplace(input->name(), 0.01);
    legalize(legal, oracle, options);
    ir::verify(legal);
    ASSERT_LE(difference(want, run(legal, inputs)), 2e-5) << ir::print(legal);
    for (const ir::Node* node : legal.nodes()) {
      // Of operands that may be large, a maximum stays.
      if (node->op().name == "maximum" || node->op().name == "minimum") continue;
      ASSERT_TRUE(node->is_constant() || oracle.supports(*node)) << ir::describe(*node) << "\n" << ir::print(legal);
    }
  }
}

}  // namespace
}  // namespace hetnn::passes
