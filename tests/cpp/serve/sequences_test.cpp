// Sequences: their names, versions and states, the bound on them, and the end of those that nobody continues.
#include "hetnn/serve/sequences.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/pack.h"

namespace hetnn::serve {
namespace {

using program::Place;

// Without states y = relu(x), of 4; with them the state becomes x + state, and so does y.
std::unique_ptr<runtime::Executable> network(bool states) {
  const auto command = [](std::string_view op, std::vector<int32_t> inputs, int32_t output, const char* variant) {
    return program::Command{.op = &ops::OpTable::global().get(op),
                            .attrs = {},
                            .inputs = std::move(inputs),
                            .outputs = {output},
                            .steps = {},
                            .variant = variant,
                            .options = {},
                            .node = "node"};
  };
  program::Program p;
  p.buffers = {{.name = "x", .shape = {4}, .place = Place::input}, {.name = "y", .shape = {4}, .place = Place::output}};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 1}};
  if (states) {
    p.buffers.push_back({.name = "s", .shape = {4}, .place = Place::input});
    p.buffers.push_back({.name = "s_next", .shape = {4}, .place = Place::output});
    const auto zeros = std::make_shared<const program::Image>(64, std::byte());
    p.weights.append({zeros, *zeros});
    p.states = {{"s", 2, 3, 0, 16}};
    const program::Code code =
        program::write_cpu_code({{command("add", {0, 2}, 3, "binary"), command("add", {0, 2}, 1, "binary")}});
    p.subprograms = {{"only", "cpu", {0, 2}, {1, 3}, {}, code}};
  } else {
    p.subprograms = {{"only", "cpu", {0}, {1}, {}, program::write_cpu_code({{command("relu", {0}, 1, "unary")}})}};
  }
  const auto image = std::make_shared<const program::Image>(program::pack(p));
  return std::make_unique<runtime::Executable>(program::Blob{image, *image}, 1);
}

Inference step(std::string sequence, std::string model = "net", std::string version = "") {
  Inference out;
  out.model = std::move(model);
  out.version = std::move(version);
  out.sequence = std::move(sequence);
  return out;
}

float sum_after(runtime::Executable& net, Sequence& sequence, float x) {
  const std::vector<Tensor> inputs = {Tensor::of<float>({4}, std::vector<float>(4, x))};
  return net.run(inputs, {.session = sequence.session.get()})[0].values<float>()[0];
}

TEST(Sequences, EachHasStatesOfItsOwn) {
  const auto net = network(true);
  Sequences sequences;
  const auto a = sequences.begin(step("a"), nullptr, "1", *net, 0),
             b = sequences.begin(step("b"), nullptr, "1", *net, 0);
  EXPECT_EQ(sum_after(*net, *a, 1), 1);
  EXPECT_EQ(sum_after(*net, *b, 5), 5);
  EXPECT_EQ(sum_after(*net, *sequences.find(step("a"), 0), 1), 2);
  // Begun again it is another; who has the first keeps it.
  EXPECT_EQ(sum_after(*net, *sequences.begin(step("a"), nullptr, "1", *net, 0), 1), 1);
  EXPECT_EQ(sum_after(*net, *a, 1), 3);
  EXPECT_EQ(sequences.size(), 2u);
  EXPECT_EQ(Sequences().begin(step("a"), nullptr, "1", *network(false), 0)->session, nullptr);
}

TEST(Sequences, ANumberATextAndAnotherNetworkAreOtherNames) {
  const auto net = network(false);
  Sequences sequences;
  Inference seven = step("7");
  seven.sequence_is_number = true;
  const auto number = sequences.begin(seven, nullptr, "1", *net, 0);
  EXPECT_ERROR(sequences.find(step("7"), 0), InvalidModel,
               "the sequence '7' of 'net' has not begun here. Its first request must have sequence_start");
  sequences.begin(step("7"), nullptr, "1", *net, 0);
  EXPECT_EQ(sequences.find(seven, 0), number);
  EXPECT_NE(sequences.find(step("7"), 0), number);
  seven.model = "other";
  EXPECT_ERROR(sequences.find(seven, 0), InvalidModel, "the sequence 7 of 'other' has not begun here");
  EXPECT_ERROR(sequences.find(step(std::string(5000, 'n')), 0), InvalidModel, "'" + std::string(100, 'n') + "' of");
}

TEST(Sequences, OneStaysOnItsVersion) {
  const auto net = network(false);
  const auto runner = std::make_shared<const int>(3);
  Sequences sequences;
  sequences.begin(step("a"), runner, "2", *net, 0);
  EXPECT_EQ(sequences.find(step("a", "net", "2"), 0)->runner, runner);
  EXPECT_EQ(sequences.find(step("a"), 0)->version, "2");
  EXPECT_ERROR(sequences.find(step("a", "net", "3"), 0), InvalidModel, "the sequence 'a' runs on version 2.");
  EXPECT_EQ(runner.use_count(), 2);
  sequences.end(step("a"));
  EXPECT_EQ(runner.use_count(), 1);
  sequences.end(step("a"));
  EXPECT_ERROR(sequences.find(step("a"), 0), InvalidModel, "has not begun here");
}

TEST(Sequences, OnesOfANetworkThatIsGoneAreForgotten) {
  const auto net = network(false);
  Sequences sequences;
  for (const char* name : {"a", "b"}) {
    sequences.begin(step(name, "net"), nullptr, "1", *net, 0);
    sequences.begin(step(name, "other"), nullptr, "1", *net, 0);
  }
  sequences.forget("net");
  EXPECT_EQ(sequences.size(), 2u);
  EXPECT_ERROR(sequences.find(step("a"), 0), InvalidModel, "has not begun here");
  sequences.find(step("a", "other"), 0);
}

TEST(Sequences, OnesThatNobodyContinuesEnd) {
  const auto net = network(false);
  constexpr int64_t kIdle = Sequences::kIdle_ns, kBegin = 5 * kIdle;
  Sequences sequences;
  sequences.begin(step("a"), nullptr, "1", *net, kBegin);
  sequences.begin(step("b"), nullptr, "1", *net, kBegin + 1);
  sequences.forget_idle(kBegin + kIdle);
  EXPECT_EQ(sequences.size(), 2u);
  sequences.find(step("a"), kBegin + kIdle);
  sequences.forget_idle(kBegin + kIdle + 1);
  EXPECT_EQ(sequences.size(), 2u);
  sequences.forget_idle(kBegin + kIdle + 2);
  EXPECT_EQ(sequences.size(), 1u);
  EXPECT_ERROR(sequences.find(step("b"), 0), InvalidModel, "has not begun here");
  sequences.begin(step("c"), nullptr, "1", *net, kBegin + kIdle + 3);
  sequences.forget_idle(kBegin + 2 * kIdle + 1);
  EXPECT_EQ(sequences.size(), 1u);
  sequences.forget_idle(kBegin + 3 * kIdle);
  EXPECT_EQ(sequences.size(), 0u);
}

TEST(Sequences, ThereAreOnlySoMany) {
  const auto net = network(false);
  Sequences sequences;
  for (size_t k = 0; k < Sequences::kMost; ++k) sequences.begin(step(std::to_string(k)), nullptr, "1", *net, 0);
  EXPECT_ERROR(sequences.begin(step("one more"), nullptr, "1", *net, 0), Unavailable,
               "10000 sequences are open already, as many as may. Try again later.");
  sequences.begin(step("7"), nullptr, "1", *net, 0);  // in its own place
  sequences.end(step("8"));
  sequences.begin(step("one more"), nullptr, "1", *net, 0);
}

}  // namespace
}  // namespace hetnn::serve
