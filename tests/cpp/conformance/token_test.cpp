// Of compiled networks every token is needed: a stream without one of them is refused when it is loaded.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <sstream>

#include "expect_error.h"
#include "hetnn/compiler/compile.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/spec.h"
#include "hetnn/npu/verify.h"
#include "hetnn/runtime/executable.h"

namespace hetnn {
namespace {

// relu-only with a scratchpad so small that layers take several steps.
TargetSpec small_target() {
  std::ifstream file(std::string(HETNN_SOURCE_DIR) + "/python/hetnn/targets/relu-only.json");
  std::ostringstream sheet;
  sheet << file.rdbuf();
  npu::Spec spec = npu::parse_spec(sheet.str(), "relu-only");
  spec.sram[0].bytes = 16384;
  return parse_target(
      R"({"name": "both", "devices": [{"name": "cpu", "kind": "cpu"}, {"name": "npu", "kind": "npu", "spec": )" +
      npu::spec_to_json(spec) + "}]}");
}

class Network {
 public:
  using Part = ir::Value*;
  explicit Network(const Shape& shape) { input = rewriter_.add_input("x", {DType::f32, shape}); }
  Part convolution(Part x, int64_t filters, int64_t kernel, int64_t groups = 1) {
    const std::vector<Dim> around = {kernel / 2, kernel / 2};
    Part weight = constant({filters, x->shape()[1].value() / groups, kernel, kernel});
    return rewriter_.add("conv2d", {x, weight, constant({filters})}, {{"padding", around}, {"groups", Dim(groups)}});
  }
  Part linear(Part x, int64_t features) {
    return rewriter_.add("linear", {x, constant({features, x->shape().back().value()})});
  }
  Part op(std::string_view name, std::vector<Part> inputs, ops::Attrs attrs = {}) {
    return rewriter_.add(name, std::move(inputs), std::move(attrs));
  }
  ir::Graph finish(Part output) {
    rewriter_.add_output(output);
    return std::move(graph_);
  }
  Part input = nullptr;

 private:
  Part constant(const std::vector<int64_t>& shape) {
    std::byte* data = nullptr;
    Tensor values = Tensor::zeros(DType::f32, shape, &data);
    auto* each = reinterpret_cast<float*>(data);
    for (int64_t k = 0; k < values.elems(); ++k) each[k] = static_cast<float>(k % 7) - 3;
    return rewriter_.constant(std::move(values));
  }
  ir::Graph graph_{"network"};
  ir::Rewriter rewriter_{graph_};
};

ir::Graph chain() {
  Network n({1, 8, 24, 24});
  auto* y = n.op("relu", {n.convolution(n.input, 16, 3)});
  return n.finish(n.convolution(y, 8, 1));
}
ir::Graph depthwise() {
  Network n({1, 16, 24, 24});
  return n.finish(n.convolution(n.op("relu", {n.convolution(n.input, 16, 3, 16)}), 16, 1));
}
ir::Graph residual() {
  Network n({1, 8, 20, 20});
  auto* y = n.convolution(n.op("relu", {n.convolution(n.input, 8, 3)}), 8, 3);
  return n.finish(n.op("relu", {n.op("add", {y, n.input})}));
}
ir::Graph pooled() {
  Network n({1, 8, 24, 24});
  auto* a = n.op("max_pool2d", {n.convolution(n.input, 8, 3)}, {{"kernel", std::vector<Dim>{2, 2}}});
  auto* b = n.op("avg_pool2d", {n.input}, {{"kernel", std::vector<Dim>{2, 2}}});
  return n.finish(n.op("concat", {a, b}, {{"axis", Dim(1)}}));
}
ir::Graph rows() {
  Network n({64, 48});
  return n.finish(n.linear(n.op("relu", {n.linear(n.input, 96)}), 32));
}

struct Named {
  const char* name;
  ir::Graph (*make)();
};

class Tokens : public testing::TestWithParam<Named> {};
INSTANTIATE_TEST_SUITE_P(Networks, Tokens,
                         testing::Values(Named{"chain", chain}, Named{"depthwise", depthwise},
                                         Named{"residual", residual}, Named{"pooled", pooled}, Named{"rows", rows}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(Tokens, AreNeededEachOne) {
  CompileOptions options;
  options.strategy = "take-all";
  const auto compilation = Compilation::make(GetParam().make(), small_target(), options);
  const auto image = std::make_shared<const program::Image>(compilation->image());
  const runtime::Executable executable({image, *image}, 1);
  const program::Program& program = *executable.program();
  size_t tokens = 0;
  for (const program::Subprogram& part : program.subprograms) {
    if (part.code.kind != "npu") continue;
    const npu::Code code = npu::read_code(part.code.as_text(npu::kCodeVersion, part.name), part.name);
    const npu::Spec device = npu::parse_spec(code.spec_json, "small");
    const npu::Variant& variant = code.variants.at(0);
    std::vector<uint64_t> words(static_cast<size_t>(variant.word_count));
    const auto bytes = program.weights.at(variant.words_offset_bytes, variant.word_count * 8);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    const std::vector<npu::Instruction> stream = npu::decode(words);
    npu::verify_stream(device, stream, variant.dram_bytes);
    std::array<std::array<std::vector<size_t>, npu::kEngines>, npu::kEngines> given;
    std::array<std::array<size_t, npu::kEngines>, npu::kEngines> taken = {};
    for (size_t k = 0; k < stream.size(); ++k) {
      if (const auto* signal = std::get_if<npu::Signal>(&stream[k]))
        given[static_cast<size_t>(signal->from)][static_cast<size_t>(signal->to)].push_back(k);
      const auto* wait = std::get_if<npu::Wait>(&stream[k]);
      if (!wait) continue;
      const auto from = static_cast<size_t>(wait->from), to = static_cast<size_t>(wait->at);
      std::vector<npu::Instruction> without = stream;
      without.erase(without.begin() + static_cast<ptrdiff_t>(k));
      without.erase(without.begin() + static_cast<ptrdiff_t>(given[from][to][taken[from][to]++]));
      EXPECT_ERROR(npu::verify_stream(device, without, variant.dram_bytes), InvalidModel, "unordered");
      ++tokens;
    }
  }
  EXPECT_GT(tokens, 10U);
}

}  // namespace
}  // namespace hetnn
