// The runtime on programs built by hand: binding, running, sharing between threads, what it refuses.
#include "hetnn/runtime/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "hetnn/base/error.h"
#include "hetnn/base/parallel.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/spec.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/pack.h"

namespace hetnn::runtime {
namespace {

using program::Place;
using testing::HasSubstr;

program::Blob blob_of(program::Image bytes) {
  auto owner = std::make_shared<const program::Image>(std::move(bytes));
  return {owner, *owner};
}

program::Command call_of(std::string_view op, std::vector<int32_t> inputs, int32_t output, std::string variant,
                         std::string node) {
  return {.op = &ops::OpTable::global().get(op),
          .attrs = {},
          .inputs = std::move(inputs),
          .outputs = {output},
          .steps = {},
          .variant = std::move(variant),
          .options = {},
          .node = std::move(node)};
}

program::CpuCode add_relu_code() {
  return {{call_of("add", {0, 1}, 2, "binary", "add_1"), call_of("relu", {2}, 3, "unary", "relu_1")}};
}

// y = relu(x + w) for rows of 4: x f32[n,4] -> y f32[n,4], w = (1, -1, 2, -2); n in 1..1000.
program::Program add_relu() {
  const Dim n = Dim::symbol("n");
  program::Program p;
  p.symbols = {{"n", 1, 1000, 2}};
  p.buffers = {{.name = "x", .shape = {n, 4}, .place = Place::input},
               {.name = "w", .shape = {4}, .place = Place::constant, .size_bytes = 16},
               {.name = "sum", .shape = {n, 4}},
               {.name = "y", .shape = {n, 4}, .place = Place::output}};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 3}};
  p.subprograms = {{"cpu0", "cpu", {0}, {3}, {}, program::write_cpu_code(add_relu_code())}};
  const float w[16] = {1, -1, 2, -2};
  program::Image weights(128, std::byte());
  std::memcpy(weights.data(), w, sizeof w);
  p.weights = program::Weights(blob_of(weights));
  p.hetnn_version = "0.1.0";
  return p;
}

std::unique_ptr<Executable> load(const program::Program& p, int threads = 0) {
  return std::make_unique<Executable>(blob_of(program::pack(p)), threads);
}

std::vector<float> run(Executable& executable, const std::vector<float>& x, RunTimes* times = nullptr,
                       bool time_commands = false) {
  const std::vector<Tensor> inputs = {Tensor::of<float>({static_cast<int64_t>(x.size() / 4), 4}, x)};
  const std::vector<Tensor> y = executable.run(inputs, {.times = times, .time_commands = time_commands});
  return {y[0].values<float>().begin(), y[0].values<float>().end()};
}

std::vector<float> numbers(int64_t rows, int seed) {
  std::vector<float> out;
  for (int64_t k = 0; k < rows * 4; ++k) out.push_back(static_cast<float>((k * 37 + seed * 11) % 19) - 9);
  return out;
}

std::vector<float> expected(const std::vector<float>& x) {
  const float w[4] = {1, -1, 2, -2};
  std::vector<float> out;
  for (size_t k = 0; k < x.size(); ++k) out.push_back(std::max(0.0f, x[k] + w[k % 4]));
  return out;
}

template <typename E, typename F>
std::string message(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Executable, RunsAnySizeInRange) {
  const auto executable = load(add_relu());
  for (const int64_t rows : {2, 1, 7, 1000, 2}) {
    const std::vector<float> x = numbers(rows, 1);
    EXPECT_EQ(run(*executable, x), expected(x)) << rows << " rows";
  }
}

TEST(Executable, GivesTheSameBitsForEveryNumberOfThreads) {
  const std::vector<float> x = numbers(1000, 3);
  for (const int threads : {1, 2, 64}) {
    const auto executable = load(add_relu(), threads);
    EXPECT_LE(executable->threads(), usable_threads(threads));
    EXPECT_EQ(run(*executable, x), expected(x)) << threads << " threads";
  }
}

TEST(Executable, ServesManyCallersAndSizesAtOnce) {
  const auto executable = load(add_relu());
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  callers.reserve(4);
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 100; ++round) {
        // More sizes than are kept ready, so that some are dropped while others run.
        const std::vector<float> x = numbers(1 + (round * 13 + caller) % 40, round);
        if (run(*executable, x) != expected(x)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Executable, TimesSubprogramsAndCommands) {
  const auto executable = load(add_relu());
  RunTimes times;
  run(*executable, numbers(2, 1), &times, true);
  ASSERT_EQ(times.subprograms.size(), 1U);
  EXPECT_EQ(times.subprograms[0].name, "cpu0");
  EXPECT_GT(times.subprograms[0].finish_us, times.subprograms[0].start_us);
  ASSERT_EQ(times.commands.size(), 2U);
  EXPECT_EQ(times.commands[0].node, "add_1");
  EXPECT_EQ(times.commands[1].kernel, "unary");
}

TEST(Executable, NamesTheInputThatDoesNotFit) {
  const auto executable = load(add_relu());
  auto refusal = [&](std::vector<std::pair<DType, std::vector<int64_t>>> types) {
    std::vector<Tensor> inputs;
    inputs.reserve(types.size());
    for (const auto& [dtype, shape] : types) inputs.push_back(Tensor::zeros(dtype, shape));
    return message<InvalidModel>([&] { executable->run(inputs); });
  };
  EXPECT_EQ(refusal({}), "the model takes 1 input (x); got 0.");
  EXPECT_EQ(refusal({{DType::f64, {2, 4}}}),
            "input 'x' must be f32[n,4]; got f64[2,4]. Convert it; nothing is cast silently.");
  EXPECT_THAT(refusal({{DType::f32, {2, 4, 1}}}), HasSubstr("must be f32[n,4]; got f32[2,4,1], of another rank"));
  EXPECT_THAT(refusal({{DType::f32, {2, 5}}}), HasSubstr("got f32[2,5]: dimension 1 must be 4."));
  EXPECT_EQ(refusal({{DType::f32, {0, 4}}}),
            "input 'x' axis 0: the dimension 'n' must be in [1, 1000]; got 0. Resize the input.");
  EXPECT_THAT(refusal({{DType::f32, {1001, 4}}}), HasSubstr("[1, 1000]; got 1001"));
}

TEST(Executable, RefusesASymbolWithTwoValues) {
  program::Program p = add_relu();
  p.buffers.push_back({.name = "x2", .shape = {Dim::symbol("n"), Dim::symbol("n") * 2}, .place = Place::input});
  p.inputs.push_back({"x2", 4});
  const auto executable = load(p);
  const auto f32 = [](std::vector<int64_t> shape) { return Tensor::zeros(DType::f32, std::move(shape)); };
  const std::vector<Tensor> two_values = {f32({2, 4}), f32({3, 6})};
  EXPECT_THAT(message<InvalidModel>([&] { executable->run(two_values); }),
              HasSubstr("input 'x2' must be f32[n,2*n]; got f32[3,6]: n is 2 elsewhere."));
  const std::vector<Tensor> not_twice = {f32({2, 4}), f32({2, 5})};
  EXPECT_THAT(message<InvalidModel>([&] { executable->run(not_twice); }), HasSubstr("input 'x2'"));
}

TEST(Executable, BuffersThatNeverLiveTogetherShareTheArena) {
  program::Program p = add_relu();
  program::CpuCode code = add_relu_code();
  auto& commands = code.commands;
  // sum -> a -> b -> y: at most two of sum, a, b are alive at once.
  for (const char* name : {"a", "b"}) p.buffers.push_back({.name = name, .shape = {Dim::symbol("n"), 4}});
  commands[1] = call_of("relu", {2}, 4, "unary", "r1");
  commands.push_back(call_of("relu", {4}, 5, "", "r2"));
  commands.push_back(call_of("relu", {5}, 3, "unary", "r3"));
  p.subprograms[0].code = program::write_cpu_code(code);
  const auto executable = load(p);
  EXPECT_EQ(executable->arena_bytes({{"n", 100}}), 2 * 1600);
  const std::vector<float> x = numbers(100, 5);
  EXPECT_EQ(run(*executable, x), expected(x));
}

TEST(Executable, NamesAKernelItDoesNotHave) {
  program::Program p = add_relu();
  program::CpuCode code = add_relu_code();
  code.commands[0].variant = "transmogrify";
  p.subprograms[0].code = program::write_cpu_code(code);
  const auto executable = load(p);
  EXPECT_THAT(message<Unsupported>([&] { run(*executable, numbers(2, 1)); }),
              HasSubstr("the kernel 'transmogrify', which this version of hetnn does not have"));
}

// The ports of add_relu and nothing between them, for a device of another kind.
program::Program on_one_device(std::string name, std::string device, program::Code code) {
  program::Program p = add_relu();
  p.buffers = {p.buffers[0], p.buffers[3]};
  p.outputs[0].buffer = 1;
  p.subprograms[0] = {std::move(name), std::move(device), {0}, {1}, {}, std::move(code)};
  return p;
}

TEST(Executable, TheNullDeviceRunsNothing) {
  const program::Program p = on_one_device("null0", "paper", {.kind = "null", .version = 1, .bytes = {}});
  const auto executable = load(p);
  EXPECT_THAT(message<Unsupported>([&] { run(*executable, numbers(2, 1)); }),
              HasSubstr("subprogram 'null0' is on the device 'paper', which plans and runs nothing"));
}

program::Code npu_code(const npu::Code& code) {
  return program::Code::of_text("npu", npu::kCodeVersion, npu::write_code(code));
}

program::Program on_an_npu_for(int64_t n) {
  npu::Variant variant{.bindings = {{"n", n}},
                       .words_offset_bytes = 64,
                       .word_count = 1,  // behind w are zeros: an end
                       .dram_bytes = 1 << 16,
                       .schedule = {},
                       .inputs = {{0, 0, DType::f32, Layout::plain}},
                       .outputs = {{1, 1 << 15, DType::f32, Layout::plain}},
                       .layers = {},
                       .runs = {}};
  return on_one_device("npu0", "npu", npu_code({npu::spec_to_json(npu::systolic_spec(4, 4)), {}, {variant}}));
}

TEST(Executable, ListsTheSizesAnAcceleratorHasCodeFor) {
  const auto executable = load(on_an_npu_for(8));
  EXPECT_THAT(message<Unsupported>([&] { run(*executable, numbers(2, 1)); }),
              AllOf(HasSubstr("no accelerator code for {n = 2}"), HasSubstr("npu0 was compiled for: {n = 8}"),
                    HasSubstr("shapes=[...]")));
}

// The same with add_relu's commands for other sizes.
program::Program on_an_npu_or_else() {
  program::Program p = add_relu();
  npu::Code code = npu::read_code(on_an_npu_for(8).subprograms[0].code.as_text(npu::kCodeVersion, "npu0"), "npu0");
  code.variants[0].outputs[0].buffer = 3;
  p.subprograms = {{"npu0", "npu", {0}, {3}, {}, npu_code(code), {}, p.subprograms[0].code}};
  return p;
}

TEST(Executable, FallsBackWhereAnAcceleratorHasNoCodeAndSaysSo) {
  const auto executable = load(on_an_npu_or_else());
  std::vector<std::string> notices;
  executable->set_notice([&](const std::string& notice) { notices.push_back(notice); });
  RunTimes times;
  for (int k = 0; k < 3; ++k) {
    const std::vector<float> x = numbers(2, k);
    EXPECT_EQ(run(*executable, x, &times, true), expected(x));
    EXPECT_TRUE(times.subprograms.at(0).fallback);
    EXPECT_EQ(times.commands.size(), 2u);
  }
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0], AllOf(HasSubstr("no accelerator code for {n = 2}, so the general processor computes"),
                                HasSubstr("npu0 was compiled for: {n = 8}")));
  run(*executable, numbers(8, 1), &times);
  EXPECT_FALSE(times.subprograms.at(0).fallback);
  executable->verify();
  // A copy has the fallback too.
  const auto copy = std::make_unique<Executable>(blob_of(executable->image()), 1);
  EXPECT_EQ(run(*copy, numbers(3, 1)), expected(numbers(3, 1)));
}

TEST(Executable, ProvesFallbacksWhenLoading) {
  const auto refusal = [](const std::function<void(program::Program&)>& alter) {
    program::Program p = on_an_npu_or_else();
    alter(p);
    return message<InvalidModel>([&] { load(p)->verify(); });
  };
  const auto alter_code = [](program::Program& p, const std::function<void(program::CpuCode&)>& alter) {
    program::CpuCode code = add_relu_code();
    alter(code);
    p.subprograms[0].fallback = program::write_cpu_code(code);
  };
  EXPECT_THAT(refusal([](program::Program& p) { p.subprograms[0].fallback->kind = "attic"; }),
              HasSubstr("subprograms[0].fallback: its code is for a device of kind 'attic'"));
  EXPECT_THAT(refusal([&](program::Program& p) {
                alter_code(p, [](program::CpuCode& code) { code.commands[1].inputs = {9}; });
              }),
              HasSubstr("subprograms[0].fallback: commands[1]: there is no buffer 9"));
  EXPECT_THAT(refusal([&](program::Program& p) { alter_code(p, [](auto& code) { code.commands.pop_back(); }); }),
              HasSubstr("'y' is never written by it"));
  EXPECT_THAT(refusal([&](program::Program& p) {
                alter_code(p, [](program::CpuCode& code) { std::swap(code.commands[0], code.commands[1]); });
              }),
              HasSubstr("is read before anything writes it"));
  EXPECT_THAT(refusal([](program::Program& p) { p.subprograms[0].fallback.reset(); }), HasSubstr("is used by nothing"));
  // What only one of two ways writes, the other subprogram must not write either way.
  EXPECT_THAT(refusal([](program::Program& p) {
                p.buffers.push_back({.name = "z", .shape = p.buffers[0].shape, .place = program::Place::output});
                p.outputs.push_back({"z", 4});
                program::CpuCode code = add_relu_code();
                code.commands[1].outputs = {4};
                p.subprograms.push_back({"cpu0", "cpu", {0}, {4}, {}, program::write_cpu_code(code)});
              }),
              AnyOf(HasSubstr("is written a second time"), HasSubstr("is written by two")));
}

TEST(Executable, AsksItsSpecializerOncePerSize) {
  const auto executable = load(on_an_npu_for(8));
  int calls = 0;
  executable->set_specializer([&](const Bindings& bindings, int32_t, int64_t weights_bytes) {
    ++calls;
    EXPECT_EQ(bindings, (Bindings{{"n", 2}}));
    return Executable::Specialized{program::pack(add_relu(), weights_bytes), ""};  // here it needs no accelerator
  });
  const std::vector<float> x = numbers(2, 1);
  EXPECT_EQ(run(*executable, x), expected(x));
  EXPECT_EQ(run(*executable, x), expected(x));
  EXPECT_EQ(calls, 1);
  // What was specialized is saved.
  const auto copy = std::make_unique<Executable>(blob_of(executable->image()), 1);
  EXPECT_EQ(run(*copy, x), expected(x));
}

TEST(Executable, ASpecializerThatFailsLeavesItUsable) {
  const auto executable = load(on_an_npu_for(8));
  bool fails = true;
  executable->set_specializer([&](const Bindings&, int32_t, int64_t weights_bytes) {
    if (fails) throw Unsupported("not today");
    return Executable::Specialized{program::pack(add_relu(), weights_bytes), ""};
  });
  const std::vector<float> x = numbers(2, 1);
  EXPECT_EQ(message<Unsupported>([&] { run(*executable, x); }), "not today");
  fails = false;
  EXPECT_EQ(run(*executable, x), expected(x));
}

// A caller's lock that a specializer takes, and that others hold while they ask the executable: Python's works so.
TEST(Executable, HoldsNoLockWhileASpecializerIsCopiedOrDies) {
  static std::recursive_mutex callers;
  struct Locked {
    Locked() = default;
    Locked(const Locked&) { const std::lock_guard lock(callers); }
    Locked& operator=(const Locked&) = delete;
    ~Locked() { const std::lock_guard lock(callers); }
  };
  const auto executable = load(on_an_npu_for(8));
  executable->set_specializer([kept = Locked()](const Bindings&, int32_t, int64_t weights_bytes) {
    const std::lock_guard lock(callers);
    return Executable::Specialized{program::pack(on_an_npu_for(8), weights_bytes), ""};
  });
  std::atomic<bool> stop{false};
  std::thread asker([&] {
    while (!stop) {
      const std::lock_guard lock(callers);
      executable->program();
    }
  });
  const std::vector<float> x = numbers(2, 1);
  for (int round = 0; round < 200; ++round)
    EXPECT_THAT(message<InternalError>([&] { run(*executable, x); }), HasSubstr("specializing gave no code"));
  stop = true;
  asker.join();
}

// y = x + s, and s becomes y.
program::Program counter() {
  program::Program p;
  p.buffers = {{.name = "x", .shape = {4}, .place = Place::input},
               {.name = "s", .shape = {4}, .place = Place::input},
               {.name = "t", .shape = {4}, .place = Place::output},
               {.name = "y", .shape = {4}, .place = Place::output}};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 3}};
  p.states = {{"s", 1, 2, 0, 16}};
  p.weights = program::Weights(blob_of(program::Image(64, std::byte())));
  p.subprograms = {{"cpu0",
                    "cpu",
                    {0, 1},
                    {2, 3},
                    {},
                    program::write_cpu_code(
                        {{call_of("add", {0, 1}, 2, "binary", "t"), call_of("add", {0, 1}, 3, "binary", "y")}})}};
  return p;
}

float count(Executable& executable, Session* session) {
  const std::vector<Tensor> x = {Tensor::of<float>({4}, std::vector<float>(4, 1))};
  return executable.run(x, {.session = session})[0].values<float>()[0];
}

TEST(Session, OwnsItsStates) {
  const auto executable = load(counter());
  const auto a = executable->session(), b = executable->session();
  EXPECT_EQ(count(*executable, nullptr), 1);
  EXPECT_EQ(count(*executable, nullptr), 2);
  EXPECT_EQ(count(*executable, a.get()), 1);
  EXPECT_EQ(count(*executable, b.get()), 1);
  EXPECT_EQ(count(*executable, a.get()), 2);
  executable->own_session().reset();
  EXPECT_EQ(count(*executable, nullptr), 1);
  EXPECT_EQ(count(*executable, a.get()), 3);
  a->reset();
  EXPECT_EQ(count(*executable, a.get()), 1);
  EXPECT_EQ(count(*executable, b.get()), 2);
}

TEST(Session, ManyRunAtOnce) {
  const auto executable = load(counter());
  std::vector<std::thread> users;
  users.reserve(4);
  std::atomic<int> wrong{0};
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&] {
      const auto session = executable->session();
      for (int k = 1; k <= 200; ++k) wrong += count(*executable, session.get()) != static_cast<float>(k);
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, OfAnotherProgramIsRefused) {
  const auto stateful = load(counter()), plain = load(add_relu());
  const auto session = plain->session();
  EXPECT_THAT(message<InvalidModel>([&] { count(*stateful, session.get()); }),
              HasSubstr("the session has the states of another executable"));
}

TEST(Executable, GivesBackMemoryBeyondItsBound) {
  const auto executable = load(add_relu(), 1);
  for (const int64_t rows : {1000, 500, 250}) run(*executable, numbers(rows, 1));
  // Each size keeps an arena for the sum.
  EXPECT_GE(executable->kept_bytes(), (1000 + 500 + 250) * 16);
  executable->keep_at_most((500 + 250) * 16 + 1000);
  EXPECT_LT(executable->kept_bytes(), 1000 * 16);
  EXPECT_GE(executable->kept_bytes(), (500 + 250) * 16);
  executable->keep_at_most(0);  // one stays, so that runs of one size after another allocate nothing
  EXPECT_GE(executable->kept_bytes(), 250 * 16);
  EXPECT_LT(executable->kept_bytes(), 500 * 16);
  const std::vector<float> x = numbers(1000, 1);
  EXPECT_EQ(run(*executable, x), expected(x));
  EXPECT_LT(executable->kept_bytes(), 1250 * 16);
}

TEST(Executable, ReturnsOutputsWithTheirShapes) {
  const auto executable = load(add_relu());
  const std::vector<float> x = numbers(3, 2);
  const std::vector<Tensor> y = executable->run(std::vector<Tensor>{Tensor::of<float>({3, 4}, x)});
  ASSERT_EQ(y.size(), 1U);
  EXPECT_EQ(y[0].shape(), (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(std::ranges::equal(y[0].values<float>(), expected(x)));
}

TEST(Executable, CopiesAnImageThatLiesAskew) {
  const program::Image image = program::pack(add_relu());
  auto moved = std::make_shared<program::Image>(image.size() + 1);
  std::copy(image.begin(), image.end(), moved->begin() + 1);
  Executable executable({moved, std::span<const std::byte>(*moved).subspan(1)}, 1);
  const std::vector<float> x = numbers(3, 2);
  EXPECT_EQ(run(executable, x), expected(x));
}

}  // namespace
}  // namespace hetnn::runtime
