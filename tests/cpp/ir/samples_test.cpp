// Every operator: its samples infer, evaluate to the inferred types, and survive printing and parsing.
#include <gtest/gtest.h>

#include <random>

#include "hetnn/base/visit_dtype.h"
#include "hetnn/ir/interpret.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"

namespace hetnn::ir {
namespace {

Tensor random_tensor(DType dtype, const std::vector<int64_t>& shape, std::mt19937& random) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(dtype, shape, &data);
  std::uniform_int_distribution<int> draw(dtype == DType::boolean ? 0 : 1, dtype == DType::boolean ? 1 : 4);
  visit_dtype(dtype, [&](auto zero) {
    auto* values = reinterpret_cast<decltype(zero)*>(data);
    for (int64_t k = 0; k < out.elems(); ++k) values[k] = static_cast<decltype(zero)>(static_cast<float>(draw(random)));
  });
  return out;
}

struct Sample {
  const ops::OpDef* op;
  std::string_view source;
};

std::vector<Sample> all_samples() {
  std::vector<Sample> out;
  for (const ops::OpDef* op : ops::OpTable::global().all()) {
    for (std::string_view source : op->samples) out.push_back({op, source});
  }
  return out;
}

class Samples : public testing::TestWithParam<Sample> {};

TEST_P(Samples, EvaluatesToWhatItInfers) {
  Graph graph = parse_sample(GetParam().source);
  verify(graph);
  const std::string printed = print(graph);
  EXPECT_EQ(print(parse(printed)), printed);
  std::mt19937 random(3);
  for (int64_t size : {9, 12}) {
    Bindings bindings;
    for (const Symbol& symbol : graph.symbols) bindings[symbol.name] = size;
    std::vector<Tensor> inputs;
    for (const Value* input : graph.inputs())
      inputs.push_back(random_tensor(input->dtype(), evaluate(input->shape(), bindings), random));
    EXPECT_EQ(interpret(graph, inputs).size(), graph.outputs().size());
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, Samples, testing::ValuesIn(all_samples()), [](const auto& sample) {
  return std::string(sample.param.op->name) + "_" + std::to_string(sample.index);
});

}  // namespace
}  // namespace hetnn::ir
