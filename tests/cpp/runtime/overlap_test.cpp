// Devices at once: a device that sleeps, failures, lifetimes and allocations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "count_allocations.h"
#include "hetnn/base/error.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/pack.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::runtime {
namespace {

using program::Place;

constexpr auto kNap = std::chrono::milliseconds(40);

// Sleeps, then copies its input to its output; its code is "fail" or nothing.
class Sleeper final : public Executor, public BoundCode, public Visit {
 public:
  explicit Sleeper(const program::Subprogram& subprogram) : subprogram_(subprogram) {}
  std::unique_ptr<const BoundCode> bind(const Sizes& sizes) const override {
    auto out = std::make_unique<Sleeper>(subprogram_);
    out->bytes_ = static_cast<size_t>(sizes.buffers[static_cast<size_t>(subprogram_.inputs[0])].size_bytes);
    return out;
  }
  std::vector<Moment> moments() const override { return {{subprogram_.inputs, subprogram_.outputs}}; }
  std::unique_ptr<Visit> open(std::span<const int64_t>) const override {
    auto out = std::make_unique<Sleeper>(subprogram_);
    out->held_.resize(bytes_);
    return out;
  }
  int64_t bytes() const override { return static_cast<int64_t>(held_.size()); }
  void upload(Addresses addresses) override {
    std::memcpy(held_.data(), addresses[static_cast<size_t>(subprogram_.inputs[0])], held_.size());
  }
  void start(const Launch&, Event& done) override {
    std::this_thread::sleep_for(kNap);
    if (subprogram_.code.as_text(1, "sleeper") == "fail") throw Unsupported("overslept");
    done.set();
  }
  void download(Addresses addresses) override {
    std::memcpy(addresses[static_cast<size_t>(subprogram_.outputs[0])], held_.data(), held_.size());
  }

 private:
  const program::Subprogram& subprogram_;
  size_t bytes_ = 0;
  program::Image held_;
};

void register_devices() {
  register_executor("sleeper", [](const Load& load) -> std::unique_ptr<const Executor> {
    return std::make_unique<Sleeper>(load.subprogram);
  });
}

program::Code cpu_code(std::string_view op, std::vector<int32_t> inputs, int32_t to, const char* variant) {
  return program::write_cpu_code({{{.op = &ops::OpTable::global().get(op),
                                    .attrs = {},
                                    .inputs = std::move(inputs),
                                    .outputs = {to},
                                    .steps = {},
                                    .variant = variant,
                                    .options = {},
                                    .node = "node"}}});
}
program::Code relu_code(int32_t from, int32_t to) { return cpu_code("relu", {from}, to, "unary"); }
program::Code add_code(int32_t a, int32_t b, int32_t to) { return cpu_code("add", {a, b}, to, "binary"); }
program::Code product_code(int32_t a, int32_t b, int32_t to) { return cpu_code("matmul", {a, b}, to, "matmul"); }
program::Code nap_code(const char* text = "") { return program::Code::of_text("sleeper", 1, text); }

program::Blob blob_of(program::Image bytes) {
  auto owner = std::make_shared<const program::Image>(std::move(bytes));
  return {owner, *owner};
}

// y = x + relu(x), where the sum is computed on the cpu and each addend by a branch of its own: a copy of x on one
// device, relu on another.
program::Program branches(const program::Code& left, const char* left_device, const program::Code& right,
                          const char* right_device) {
  program::Program p;
  const Shape shape = {64};
  p.buffers = {{.name = "x", .shape = shape, .place = Place::input},
               {.name = "a", .shape = shape},
               {.name = "b", .shape = shape},
               {.name = "y", .shape = shape, .place = Place::output}};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 3}};
  p.subprograms = {{"left", left_device, {0}, {1}, {}, left},
                   {"right", right_device, {0}, {2}, {}, right},
                   {"sum", "cpu", {1, 2}, {3}, {0, 1}, add_code(1, 2, 3)}};
  return p;
}

struct Timed {
  std::vector<float> y;
  RunTimes times;
  double wall_us = 0;
};

std::vector<float> input() {
  std::vector<float> x(64);
  for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 7) - 3;
  return x;
}

Timed run(Executable& executable, bool overlap) {
  Timed out;
  const std::vector<Tensor> x = {Tensor::of<float>({64}, input())};
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Tensor> y = executable.run(x, {.overlap = overlap, .times = &out.times});
  out.wall_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  out.y.assign(y[0].values<float>().begin(), y[0].values<float>().end());
  return out;
}

std::vector<float> expected(const std::vector<float>& x) {
  std::vector<float> out;
  out.reserve(x.size());
  for (const float value : x) out.push_back(value + std::max(value, 0.0F));
  return out;
}

std::unique_ptr<Executable> load(const program::Program& p, int threads = 1) {
  register_devices();
  return std::make_unique<Executable>(blob_of(program::pack(p)), threads);
}

bool met(const SubprogramTime& a, const SubprogramTime& b) {
  return a.start_us < b.finish_us && b.start_us < a.finish_us;
}

constexpr double kNap_us = std::chrono::duration<double, std::micro>(kNap).count();

TEST(Overlap, BranchesOfTwoDevicesRunAtOnce) {
  const auto executable = load(branches(nap_code(), "sleeper", relu_code(0, 2), "cpu"));
  const Timed apart = run(*executable, false);
  Timed together = run(*executable, true);
  // A machine that is busy elsewhere may start either thread late, even when the other one is done.
  const auto in_time = [&] { return together.times.subprograms[1].finish_us < kNap_us; };
  const auto at_once = [&] { return met(together.times.subprograms[0], together.times.subprograms[1]); };
  for (int round = 0; round < 4 && !(in_time() && at_once()); ++round) together = run(*executable, true);
  EXPECT_EQ(together.y, expected(input()));
  EXPECT_EQ(apart.y, together.y);
  // The cpu's branch is done long before the sleeper wakes.
  EXPECT_TRUE(at_once());
  EXPECT_FALSE(met(apart.times.subprograms[0], apart.times.subprograms[1]));
  EXPECT_TRUE(in_time());
  EXPECT_GE(together.times.subprograms[2].start_us, kNap_us);
}

TEST(Overlap, TwoSleepersTakeTheTimeOfOne) {
  program::Program p = branches(nap_code(), "s1", nap_code(), "s2");
  const auto executable = load(p);
  EXPECT_GE(run(*executable, false).wall_us, 2 * kNap_us);
  double best_us = 2 * kNap_us;
  for (int round = 0; round < 5; ++round) best_us = std::min(best_us, run(*executable, true).wall_us);
  EXPECT_LT(best_us, 1.7 * kNap_us);
}

TEST(Overlap, OneDeviceRunsItsSubprogramsInTurn) {
  const auto executable = load(branches(nap_code(), "s1", nap_code(), "s1"));
  const Timed timed = run(*executable, true);
  EXPECT_FALSE(met(timed.times.subprograms[0], timed.times.subprograms[1]));
}

// x -> a -> b on one device, x -> c -> d on another, b and d to the sum.
TEST(Overlap, BuffersOfBranchesShareNoBytes) {
  program::Program p = branches(nap_code(), "s1", nap_code(), "s2");
  for (const char* name : {"c", "d"}) p.buffers.push_back({.name = name, .shape = {64}});
  p.subprograms = {{"0", "s1", {0}, {1}, {}, nap_code()},
                   {"1", "s1", {1}, {2}, {0}, nap_code()},
                   {"2", "s2", {0}, {4}, {}, nap_code()},
                   {"3", "s2", {4}, {5}, {2}, nap_code()},
                   {"sum", "cpu", {2, 5}, {3}, {1, 3}, add_code(2, 5, 3)}};
  EXPECT_EQ(load(p)->arena_bytes({}), 4 * 256);
  // In turn, a is read before c is written.
  p.subprograms[2].depends_on = {1};
  EXPECT_EQ(load(p)->arena_bytes({}), 3 * 256);
}

// Alternately on two devices, each reading the one before.
program::Program chain(int length) {
  program::Program p = branches(relu_code(0, 1), "even", relu_code(0, 2), "odd");
  p.buffers.resize(1);
  p.subprograms.clear();
  for (int32_t k = 0; k < length; ++k) {
    p.buffers.push_back({.name = text("v", k), .shape = {64}});
    p.subprograms.push_back({text(k), k % 2 ? "odd" : "even", {k}, {k + 1}, {}, relu_code(k, k + 1)});
    if (k > 0) p.subprograms.back().depends_on = {k - 1};
  }
  p.buffers.back().place = Place::output;
  p.outputs = {{"y", length}};
  return p;
}

TEST(Overlap, ASerialChainCostsLittleMore) {
  constexpr int kLength = 40, kRuns = 50;
  const auto executable = load(chain(kLength));
  double best_us[2] = {1e9, 1e9};
  for (int round = 0; round < 40; ++round) {
    for (const bool overlap : {false, true}) {
      const auto begin = std::chrono::steady_clock::now();
      for (int k = 0; k < kRuns; ++k) run(*executable, overlap);
      const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
      best_us[overlap] = std::min(best_us[overlap], us / kRuns / kLength);
    }
  }
  std::printf("serial chain: %.3f us a subprogram in turn, %.3f at once\n", best_us[0], best_us[1]);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LE(best_us[1], best_us[0] + 3);
#endif
}

TEST(Overlap, AFailureReachesTheCallerAndLeavesTheExecutableUsable) {
  for (const bool overlap : {true, false}) {
    const auto executable = load(branches(nap_code("fail"), "sleeper", relu_code(0, 2), "cpu"));
    for (int round = 0; round < 2; ++round)
      EXPECT_THAT([&] { run(*executable, overlap); }, testing::ThrowsMessage<Unsupported>("overslept"));
  }
}

TEST(Overlap, ManyCallersAtOnce) {
  const auto executable = load(branches(nap_code(), "sleeper", relu_code(0, 2), "cpu"), 2);
  std::vector<std::thread> callers;
  callers.reserve(6);
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 3; ++round) wrong += run(*executable, true).y != expected(input());
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Overlap, WorksInAForkedChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer lets no child of a program with threads start any";
#endif
  const auto executable = load(branches(nap_code(), "sleeper", relu_code(0, 2), "cpu"), 2);
  run(*executable, true);
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(run(*executable, true).y == expected(input()) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// What the runtime does itself: the kernels here are products of matrices, which allocate nothing.
TEST(Overlap, NothingIsAllocatedAfterTheFirstRun) {
  program::Program p = branches(nap_code(), "sleeper", product_code(0, 0, 2), "cpu");
  p.subprograms[2].code = product_code(1, 2, 3);
  for (program::Buffer& buffer : p.buffers) buffer.shape = {8, 8};
  const auto executable = load(p, 2);
  struct InPlace final : ops::Results {
    std::byte* allocate(size_t, DType, std::span<const int64_t>) override { return reinterpret_cast<std::byte*>(y); }
    float y[64];
  } outputs;
  const Tensor x = Tensor::of<float>({8, 8}, input());
  const ops::View inputs[] = {x};
  for (const bool overlap : {true, false}) {
    RunTimes times;
    const RunOptions options{.overlap = overlap, .times = &times};
    executable->run(inputs, outputs, options);
    const int64_t before = allocations();
    for (int round = 0; round < 3; ++round) executable->run(inputs, outputs, options);
    EXPECT_EQ(allocations() - before, 0) << (overlap ? "at once" : "in turn");
  }
}

}  // namespace
}  // namespace hetnn::runtime
