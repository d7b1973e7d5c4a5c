// Every operator: its samples infer, evaluate to the inferred types, and survive printing and parsing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>

#include "hetnn/base/error.h"
#include "hetnn/base/visit_dtype.h"
#include "hetnn/ir/interpret.h"
#include "hetnn/ir/text.h"
#include "hetnn/ir/verify.h"
#include "hetnn/ops/batch.h"

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

// The tensor's entry at an index along axis 0.
Tensor entry_of(const Tensor& all, int64_t at) {
  std::vector<int64_t> shape = all.shape();
  const int64_t bytes = all.bytes() / shape[0];
  shape[0] = 1;
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(all.dtype(), shape, &data);
  std::copy_n(all.data() + at * bytes, bytes, data);
  return out;
}

// The type of a batch's entry.
ops::Type of_entry(ops::Type type) {
  type.shape[0] = 1;
  return type;
}

// Of how many sets of the sample's inputs, which hold a batch together, entries were computed by themselves.
int compare_entries(const Sample& sample) {
  const Graph graph = parse_sample(sample.source);
  const auto nodes = graph.nodes();
  const auto at = std::ranges::find_if(nodes, [&](const Node* each) { return &each->op() == sample.op; });
  if (at == nodes.end()) return 0;
  Bindings bindings;
  for (const Symbol& symbol : graph.symbols) bindings[symbol.name] = 9;
  const ops::BoundCall bound((*at)->call(), bindings);
  const ops::Call& call = bound.call();
  const size_t count = call.inputs.size();
  std::mt19937 random(3);
  std::vector<std::optional<Tensor>> inputs(count);
  for (size_t k = 0; k < count; ++k) {
    if (const Tensor* constant = call.constant(k)) {
      inputs[k] = *constant;
    } else if (call.has(k)) {
      inputs[k] = random_tensor(call.input(k).dtype, evaluate(call.input(k).shape, {}), random);
    }
  }
  int compared = 0;
  for (unsigned set = 1; set < 1U << std::min<size_t>(count, 6); ++set) {
    std::array<bool, 32> batched{};
    int64_t entries = 0;
    bool alike = true;
    for (size_t k = 0; k < count; ++k) {
      batched[k] = (set >> k & 1U) != 0;
      if (!batched[k]) continue;
      const bool holds = inputs[k] && !call.constant(k) && !inputs[k]->shape().empty() && inputs[k]->shape()[0] > 1;
      alike = alike && holds && (entries == 0 || inputs[k]->shape()[0] == entries);
      if (holds) entries = inputs[k]->shape()[0];
    }
    const auto gives = [&](const ops::Type* type) { return !type->shape.empty() && type->shape[0] == Dim(entries); };
    if (!alike || !std::ranges::all_of(call.outputs, gives) || !ops::keeps_batch(call, std::span(batched).first(count)))
      continue;
    ops::Call alone = call;
    std::vector<ops::Type> types(count);
    for (size_t k = 0; k < count; ++k) {
      if (!batched[k]) continue;
      types[k] = of_entry(call.input(k));
      alone.inputs[k].type = &types[k];
    }
    alone.attrs = ops::attrs_of_entries(call, 1);
    alone.outputs.clear();
    // Where another input holds all entries, too, nobody would compute one by itself.
    try {
      const auto is_entry = [](const ops::Type& type, const ops::Type* all) {
        return type.shape == of_entry(*all).shape;
      };
      if (!std::ranges::equal(ops::infer_types(alone), call.outputs, is_entry)) continue;
    } catch (const InvalidModel&) {
      continue;
    }
    const std::vector<Tensor> whole = ops::evaluate(call, inputs, {});
    for (int64_t n = 0; n < entries; ++n) {
      std::vector<std::optional<Tensor>> given = inputs;
      for (size_t k = 0; k < count; ++k)
        if (batched[k]) given[k] = entry_of(*inputs[k], n);
      const std::vector<Tensor> own = ops::evaluate(alone, given, {});
      for (size_t k = 0; k < own.size(); ++k) {
        const Tensor wanted = entry_of(whole[k], n);
        EXPECT_EQ(own[k].shape(), wanted.shape()) << sample.source;
        EXPECT_TRUE(own[k].bytes() == wanted.bytes() &&
                    std::equal(own[k].data(), own[k].data() + own[k].bytes(), wanted.data()))
            << sample.source << ", entry " << n << " of set " << set;
      }
    }
    ++compared;
  }
  return compared;
}

TEST(AllOps, EntriesOfABatchThatIsKeptFollowFromThemAlone) {
  std::map<std::string_view, int> compared;
  for (const Sample& sample : all_samples()) {
    if (sample.op->keeps_batch || sample.op->has(ops::Trait::elementwise))
      compared[sample.op->name] += compare_entries(sample);
  }
  for (const auto& [op, times] : compared) EXPECT_GT(times, 0) << op << " has no sample that shows it";
}

INSTANTIATE_TEST_SUITE_P(AllOps, Samples, testing::ValuesIn(all_samples()), [](const auto& sample) {
  return std::string(sample.param.op->name) + "_" + std::to_string(sample.index);
});

}  // namespace
}  // namespace hetnn::ir
