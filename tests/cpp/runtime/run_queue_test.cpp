// Requests that wait: their order, their rows in one run, failures, versions that close.
#include "hetnn/runtime/run_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <latch>
#include <map>
#include <thread>

#include "hetnn/base/error.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/pack.h"

namespace hetnn::runtime {
namespace {

using program::Place;

program::Code code_of(std::string_view op, std::vector<int32_t> inputs, int32_t output, const char* variant) {
  return program::write_cpu_code({{{.op = &ops::OpTable::global().get(op),
                                    .attrs = {},
                                    .inputs = std::move(inputs),
                                    .outputs = {output},
                                    .steps = {},
                                    .variant = variant,
                                    .options = {},
                                    .node = "node"}}});
}

// y = relu(x) for 1 to 8 rows of 2.
program::Program rectifier() {
  const Dim n = Dim::symbol("n");
  program::Program p;
  p.symbols = {{"n", 1, 8, 2}};
  p.buffers = {{.name = "x", .shape = {n, 2}, .place = Place::input},
               {.name = "y", .shape = {n, 2}, .place = Place::output}};
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 1}};
  p.subprograms = {{"only", "cpu", {0}, {1}, {}, code_of("relu", {0}, 1, "unary")}};
  return p;
}

std::unique_ptr<Executable> load(const program::Program& p) {
  auto owner = std::make_shared<const program::Image>(program::pack(p));
  return std::make_unique<Executable>(program::Blob{owner, *owner}, 1);
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class RunQueues : public testing::Test {
 protected:
  ~RunQueues() override { ::close(descriptor_); }

  Request request(int64_t number, int64_t rows, int64_t priority = 0) {
    std::vector<float> values;
    for (int64_t k = 0; k < 2 * rows; ++k) values.push_back(static_cast<float>((k % 2 ? -1 : 1) * (number + k)));
    return {.number = number,
            .priority = priority,
            .arrived_ns = now_ns(),
            .rows = rows,
            .inputs = {Tensor::of<float>({rows, 2}, values)}};
  }

  // What ended, in that order, once there are so many.
  std::vector<Ended> wait_for(size_t count) {
    std::vector<Ended> out;
    while (out.size() < count) {
      pollfd waited{.fd = descriptor_, .events = POLLIN, .revents = 0};
      if (poll(&waited, 1, 20000) != 1) break;
      uint64_t times = 0;
      EXPECT_EQ(read(descriptor_, &times, sizeof times), static_cast<ssize_t>(sizeof times));
      for (Ended& ended : ends_.take()) out.push_back(std::move(ended));
    }
    EXPECT_EQ(out.size(), count);
    return out;
  }

  static void expect_rectified(const Ended& ended) {
    ASSERT_EQ(ended.outputs.size(), 1U);
    const auto x = ended.request.inputs[0].values<float>(), y = ended.outputs[0].values<float>();
    EXPECT_EQ(ended.outputs[0].shape(), ended.request.inputs[0].shape());
    for (size_t k = 0; k < x.size(); ++k) EXPECT_EQ(y[k], std::max(x[k], 0.0F)) << ended.request.number << " " << k;
  }

  const int descriptor_ = eventfd(0, EFD_CLOEXEC);
  Ends ends_{descriptor_};
  std::unique_ptr<Executable> executable_ = load(rectifier());
};

TEST_F(RunQueues, RowsThatArriveTogetherShareARun) {
  RunQueue queue(*executable_, ends_, {.most_rows = 8, .delay_ns = 20'000'000'000});
  for (const int64_t rows : {3, 1, 4}) EXPECT_TRUE(queue.submit(request(rows, rows)));
  const std::vector<Ended> ended = wait_for(3);
  int64_t run_rows = 0;
  for (const Ended& one : ended) {
    expect_rectified(one);
    run_rows += one.run_rows;
    EXPECT_EQ(one.started_ns, ended[0].started_ns);
  }
  EXPECT_EQ(run_rows, 8);
}

// A run that is alone has all cores; of those that wait for it each gets its own.
TEST_F(RunQueues, RunsShareCores) {
  for (int round = 0; round < 20; ++round) {
    RunQueue queue(*executable_, ends_, {.threads = 3, .cores = 2});
    for (int64_t number = 0; number < 50; ++number) EXPECT_TRUE(queue.submit(request(number, 1)));
    std::vector<bool> seen(50);
    for (const Ended& one : wait_for(50)) {
      expect_rectified(one);
      seen[static_cast<size_t>(one.request.number)] = true;
    }
    EXPECT_THAT(seen, testing::Each(true));
  }  // and threads that wait for a core end with the queue
}

TEST_F(RunQueues, AClosedQueueEndsThreadsThatWaitForACore) {
  for (int round = 0; round < 50; ++round) {
    RunQueue queue(*executable_, ends_, {.threads = 4, .cores = 1});
    for (int64_t number = 0; number < 20; ++number) queue.submit(request(number, 1));
    queue.close();
    wait_for(20);
  }
}

TEST_F(RunQueues, ARunTakesNoMoreRowsThanItMay) {
  RunQueue queue(*executable_, ends_, {.most_rows = 8, .delay_ns = 50'000'000});
  for (const int64_t rows : {5, 4}) queue.submit(request(rows, rows));
  const std::vector<Ended> ended = wait_for(2);
  for (const Ended& one : ended) {
    expect_rectified(one);
    EXPECT_EQ(one.run_rows, one.request.rows);
  }
}

TEST_F(RunQueues, OneThatFailsFailsAlone) {
  RunQueue queue(*executable_, ends_, {.most_rows = 20, .delay_ns = 50'000'000});
  for (const int64_t rows : {2, 9, 3}) queue.submit(request(rows, rows));
  int failed = 0;
  for (const Ended& one : wait_for(3)) {
    if (one.request.rows != 9) {
      expect_rectified(one);
      continue;
    }
    ++failed;
    EXPECT_THAT([&] { std::rethrow_exception(one.error); },
                testing::ThrowsMessage<InvalidModel>(testing::HasSubstr("must be in [1, 8]; got 9")));
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(RunQueues, ScalarsHaveNoRowsToJoin) {
  RunQueue queue(*executable_, ends_, {.most_rows = 20, .delay_ns = 50'000'000});
  for (const int64_t number : {1, 2})
    queue.submit({.number = number, .arrived_ns = now_ns(), .inputs = {Tensor::scalar(1.0F)}});
  for (const Ended& one : wait_for(2)) {
    EXPECT_THAT([&] { std::rethrow_exception(one.error); },
                testing::ThrowsMessage<InvalidModel>(testing::HasSubstr("rank")));
  }
}

// A run that goes on until it is let go.
struct Held final : ops::Results {
  std::byte* allocate(size_t, DType, std::span<const int64_t>) override {
    begun.count_down();
    let_go.wait();
    return reinterpret_cast<std::byte*>(y);
  }
  std::latch begun{1}, let_go{1};
  float y[2];
};

TEST_F(RunQueues, LessPriorityGoesFirstThenWhoCameFirst) {
  executable_->limit_runs(1, false);
  Held held;
  std::thread holder([&] {
    const Tensor x = Tensor::of<float>({1, 2}, std::vector<float>{1, 2});
    const ops::View inputs[] = {x};
    executable_->run(inputs, held);
  });
  held.begun.wait();
  RunQueue queue(*executable_, ends_, {});
  queue.submit(request(0, 1, -1));
  for (const auto& [number, priority] : std::map<int64_t, int64_t>{{1, 5}, {2, 3}, {3, 5}, {4, 3}})
    queue.submit(request(number, 1, priority));
  queue.drop(3);
  held.let_go.count_down();
  std::vector<int64_t> order;
  for (const Ended& one : wait_for(5)) {
    if (!one.dropped) order.push_back(one.request.number);
  }
  holder.join();
  EXPECT_THAT(order, testing::ElementsAre(0, 2, 4, 1));
}

TEST_F(RunQueues, AClosedQueueServesSessionsOnly) {
  RunQueue queue(*executable_, ends_, {});
  queue.submit(request(1, 1));
  wait_for(1);
  queue.close();
  EXPECT_FALSE(queue.submit(request(2, 1)));
  const std::unique_ptr<Session> session = executable_->session();
  for (int64_t number = 3; number < 6; ++number) {
    Request step = request(number, 1);
    step.session = session.get();
    EXPECT_TRUE(queue.submit(std::move(step)));
    expect_rectified(wait_for(1)[0]);
  }
}

}  // namespace
}  // namespace hetnn::runtime
