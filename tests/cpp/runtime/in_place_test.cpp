// States that are written over their old values: which ones are, and that runs which fail or are stopped leave them.
#include "hetnn/runtime/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <thread>

#include "hetnn/base/error.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/pack.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::runtime {
namespace {

using program::Place;

constexpr int64_t kElems = 100000;
constexpr int64_t kState_bytes = 4 * kElems;

program::Command call_of(std::string_view op, std::vector<int32_t> inputs, int32_t output, std::string variant) {
  return {.op = &ops::OpTable::global().get(op),
          .attrs = {},
          .inputs = std::move(inputs),
          .outputs = {output},
          .steps = {},
          .variant = std::move(variant),
          .options = {},
          .node = std::string(op)};
}

enum Buffers : int32_t { kX, kIndex, kS, kNext, kFound, kSlow, kSum, kOther, kOtherNext };

// Adds x to two states; g = x[index], which refuses an index out of range.
program::Program counter(const std::vector<program::Command>& commands, std::vector<int32_t> outputs) {
  program::Program p;
  const Shape shape = {kElems};
  p.buffers = {{.name = "x", .shape = shape, .place = Place::input},
               {.name = "index", .dtype = DType::i64, .shape = {1}, .place = Place::input},
               {.name = "s", .shape = shape, .place = Place::input},
               {.name = "s.next", .shape = shape, .place = Place::output},
               {.name = "found", .shape = {1}, .place = Place::output},
               {.name = "slow", .shape = shape},
               {.name = "sum", .shape = shape, .place = Place::output},
               {.name = "o", .shape = shape, .place = Place::input},
               {.name = "o.next", .shape = shape, .place = Place::output}};
  p.inputs = {{"x", kX}, {"index", kIndex}};
  for (const int32_t id : outputs) p.outputs.push_back({p.buffers[static_cast<size_t>(id)].name, id});
  p.states = {{"s", kS, kNext, 0, kState_bytes}, {"o", kOther, kOtherNext, kState_bytes, kState_bytes}};
  auto zeros = std::make_shared<const program::Image>(static_cast<size_t>(2 * kState_bytes), std::byte());
  p.weights = program::Weights(program::Blob(zeros, *zeros));
  outputs.insert(outputs.end(), {kNext, kOtherNext});
  p.subprograms = {{"cpu0", "cpu", {kX, kIndex, kS, kOther}, outputs, {}, program::write_cpu_code({commands})}};
  return p;
}

std::vector<program::Command> commands(bool fails_late, bool reads_late) {
  const program::Command find = call_of("gather_elements", {kX, kIndex}, kFound, "gather_elements");
  std::vector<program::Command> out = {call_of("exp", {kX}, kSlow, "unary")};
  if (!fails_late) out.push_back(find);
  if (!reads_late) out.push_back(call_of("add", {kSlow, kS}, kSum, "binary"));
  out.push_back(call_of("add", {kS, kX}, kNext, "binary"));
  out.push_back(call_of("add", {kX, kOther}, kOtherNext, "binary"));
  if (reads_late) out.push_back(call_of("add", {kSlow, kS}, kSum, "binary"));
  if (fails_late) out.push_back(find);
  return out;
}

std::unique_ptr<Executable> load(const program::Program& p) {
  auto image = std::make_shared<const program::Image>(program::pack(p));
  return std::make_unique<Executable>(program::Blob(image, *image), 2);
}

void run(Executable& executable, int64_t index, const Stop* stop = nullptr) {
  const std::vector<Tensor> inputs = {Tensor::of<float>({kElems}, std::vector<float>(static_cast<size_t>(kElems), 1)),
                                      Tensor::of<int64_t>({1}, std::vector<int64_t>{index})};
  executable.run(inputs, {.stop = stop});
}

// What all elements of both states are; -1 where they differ.
float held(Executable& executable) {
  const Tensor s = executable.own_session().read("s"), o = executable.own_session().read("o");
  const float first = s.values<float>()[0];
  const auto same = [&](float value) { return value == first; };
  return std::ranges::all_of(s.values<float>(), same) && std::ranges::all_of(o.values<float>(), same) ? first : -1;
}

struct Form {
  bool fails_late, reads_late;
  int blocks;  // of the two states
};

class KeptStates : public testing::TestWithParam<Form> {};

// A state whose old value is read later, and both where something may still fail, have two blocks.
TEST_P(KeptStates, HaveOneBlockWhereNothingCanEndARunBehindIt) {
  const auto [fails_late, reads_late, blocks] = GetParam();
  const auto executable = load(counter(commands(fails_late, reads_late), {kFound, kSum}));
  run(*executable, 0);
  run(*executable, -1);
  EXPECT_EQ(held(*executable), 2);
  EXPECT_EQ(executable->own_session().bytes() / kState_bytes, blocks);
}

TEST_P(KeptStates, StayWhereARunFails) {
  const auto [fails_late, reads_late, blocks] = GetParam();
  const auto executable = load(counter(commands(fails_late, reads_late), {kFound, kSum}));
  run(*executable, 0);
  EXPECT_THROW(run(*executable, kElems), InvalidModel);
  EXPECT_EQ(held(*executable), 1);
  run(*executable, 0);
  EXPECT_EQ(held(*executable), 2);
}

TEST_P(KeptStates, AreOfOneRunHoweverItIsStopped) {
  const auto [fails_late, reads_late, blocks] = GetParam();
  const auto executable = load(counter(commands(fails_late, reads_late), {kFound, kSum}));
  float ended = 0;
  int stopped = 0;
  // A busy machine may take the thread that asks to its end late in many rounds.
  for (int round = 0; round < 200 || (stopped == 0 && round < 20'000); ++round) {
    Stop stop;
    std::latch is_there(1);
    std::thread asker([&] {
      is_there.count_down();
      std::this_thread::sleep_for(std::chrono::microseconds(round % 200));
      stop.request();
    });
    is_there.wait();
    try {
      run(*executable, 0, &stop);
      ++ended;
    } catch (const Cancelled&) {
      ++stopped;
    }
    asker.join();
    ASSERT_EQ(held(*executable), ended) << "round " << round << ", " << stopped << " were stopped";
  }
  EXPECT_GT(stopped, 0);
}

INSTANTIATE_TEST_SUITE_P(Forms, KeptStates,
                         testing::Values(Form{false, false, 2}, Form{false, true, 3}, Form{true, false, 4}));

}  // namespace
}  // namespace hetnn::runtime
