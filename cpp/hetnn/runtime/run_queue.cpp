// Takes requests by priority, joins their rows where that is one run, and hands on what each became.
#include "hetnn/runtime/run_queue.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>

#include "hetnn/base/parallel.h"
#include "hetnn/base/pinned_core.h"

namespace hetnn::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Such a run is over before a thread beside it is awake.
constexpr int64_t kShortRunNs = 200'000;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

bool alike(const Request& a, const Request& b) {
  return std::ranges::equal(a.inputs, b.inputs, [](const Tensor& x, const Tensor& y) {
    return x.dtype() == y.dtype() && x.rank() == y.rank() && x.rank() > 0 &&
           std::equal(x.shape().begin() + 1, x.shape().end(), y.shape().begin() + 1);
  });
}

// All rows of one input, in the requests' order.
Tensor joined(const std::vector<Request>& requests, size_t input, int64_t rows) {
  const Tensor& first = requests.front().inputs[input];
  std::vector<int64_t> shape = first.shape();
  shape[0] = rows;
  std::byte* to = nullptr;
  Tensor out = Tensor::zeros(first.dtype(), std::move(shape), &to);
  for (const Request& request : requests) {
    const Tensor& part = request.inputs[input];
    if (part.bytes() > 0) std::memcpy(to, part.data(), static_cast<size_t>(part.bytes()));
    to += part.bytes();
  }
  return out;
}

// Rows [begin, begin + rows) where they lie.
Tensor part_of(const Tensor& whole, int64_t begin, int64_t rows) {
  std::vector<int64_t> shape = whole.shape();
  const int64_t row_bytes = shape[0] > 0 ? whole.bytes() / shape[0] : 0;
  shape[0] = rows;
  return {whole.dtype(), std::move(shape), std::make_shared<const Tensor>(whole), whole.data() + begin * row_bytes};
}

std::vector<std::pair<std::string, double>> busy_us(const RunTimes& times) {
  std::vector<std::pair<std::string, double>> out;
  out.reserve(times.subprograms.size() + times.bodies.size());
  for (const auto* rows : {&times.subprograms, &times.bodies}) {
    for (const SubprogramTime& row : *rows) out.emplace_back(row.device, row.busy_us);
  }
  return out;
}

}  // namespace

void Ends::add(std::vector<Ended> more, bool leaves) {
  std::optional<WaitingThread::Here> here;
  if (leaves) here.emplace(taker_);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = ended_.empty();
    std::ranges::move(more, std::back_inserter(ended_));
  }
  const uint64_t one = 1;
  // A descriptor that is full has been written to and not read yet.
  if (first) [[maybe_unused]]
    const auto written = ::write(descriptor_, &one, sizeof one);
}

std::vector<Ended> Ends::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

RunQueue::RunQueue(Executable& executable, Ends& ends, const Options& options)
    : executable_(executable), ends_(ends), options_(options), shares_(options.cores) {}

RunQueue::~RunQueue() {
  close();
  for (std::thread& thread : threads_) thread.join();
}

bool RunQueue::later(const Waiting& a, const Waiting& b) {
  return std::pair(a.priority, a.order) > std::pair(b.priority, b.order);
}

bool RunQueue::submit(Request request) {
  const bool taken = submit_asleep(std::move(request));
  if (taken) wake_.notify_one();
  return taken;
}

bool RunQueue::submit_asleep(Request request) {
  const std::lock_guard lock(mutex_);
  if (closed_ && !request.session) return false;
  waiting_.push_back({request.priority, orders_++, std::move(request)});
  std::ranges::push_heap(waiting_, later);
  if (static_cast<int>(waiting_.size()) > idle_ && running_ < options_.threads) {
    if (running_ == 0) {  // those of a queue that was closed have ended
      for (std::thread& thread : threads_) thread.join();
      threads_.clear();
    }
    threads_.emplace_back([this] { serve(); });
    ++running_;
  }
  return true;
}

void RunQueue::wake() { wake_.notify_all(); }

void RunQueue::drop(int64_t number) {
  std::vector<Ended> out;
  {
    const std::lock_guard lock(mutex_);
    const auto at = std::ranges::find(waiting_, number, [](const Waiting& w) { return w.request.number; });
    if (at == waiting_.end()) return;
    out.push_back({.request = std::move(at->request), .dropped = true});
    waiting_.erase(at);
    std::ranges::make_heap(waiting_, later);
  }
  ends_.add(std::move(out));
}

void RunQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  wake_.notify_all();
}

Request RunQueue::pop() {
  std::ranges::pop_heap(waiting_, later);
  Request out = std::move(waiting_.back().request);
  waiting_.pop_back();
  return out;
}

void RunQueue::serve() {
  PinnedCore core;
  for (Turn turn = next(); !turn.requests.empty(); turn = next()) {
    if (turn.cores == 0) {
      ends_.add(run(std::move(turn.requests)));
      continue;
    }
    if (turn.apart) {
      core.begin();
    } else {
      core.release();
    }
    const int64_t begun_ns = now_ns();
    std::vector<Ended> ended;
    {
      const ThreadsAtMost bound(turn.cores);
      ended = run(std::move(turn.requests));
    }
    ends_.add(std::move(ended), turn.apart && !any_waits());
    const int64_t took_ns = now_ns() - begun_ns;
    if (turn.apart) core.end();
    bool others = false;
    {
      const std::lock_guard lock(mutex_);
      shares_.give_back(turn.cores);
      short_runs_ = took_ns < kShortRunNs;
      others = closed_ || (!short_runs_ && turn.cores > 1 && waiting_.size() > 1);
    }
    if (others) wake_.notify_all();
  }
}

// The next request, and with it those that fit into its run; none once the queue is closed and empty.
RunQueue::Turn RunQueue::next() {
  std::unique_lock lock(mutex_);
  const auto may_run = [&] { return options_.cores == 0 || shares_.any_free(); };
  ++idle_;
  wake_.wait(lock, [&] { return waiting_.empty() ? closed_ : may_run(); });
  --idle_;
  if (waiting_.empty()) {
    --running_;
    return {};
  }
  Turn turn;
  std::vector<Request>& out = turn.requests;
  out.push_back(pop());
  int64_t rows = out.front().rows;
  const Clock::time_point last{std::chrono::nanoseconds(out.front().arrived_ns + options_.delay_ns)};
  while (rows < options_.most_rows) {
    if (!waiting_.empty()) {
      const Request& other = waiting_.front().request;
      if (rows + other.rows > options_.most_rows || !alike(out.front(), other)) break;
      rows += other.rows;
      out.push_back(pop());
    } else if (options_.delay_ns == 0 || closed_ || Clock::now() >= last ||
               wake_.wait_until(lock, last) == std::cv_status::timeout) {
      break;
    }
  }
  if (options_.cores > 0) {
    turn.cores = short_runs_ ? shares_.take_free() : shares_.take(static_cast<int64_t>(waiting_.size()), now_ns());
    turn.apart = !short_runs_ && turn.cores == 1;
  }
  return turn;
}

bool RunQueue::any_waits() {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty();
}

std::vector<Ended> RunQueue::run(std::vector<Request> requests) {
  std::vector<Ended> out;
  if (requests.size() > 1) {
    try {
      out = run_together(requests);
    } catch (...) {  // one at a time tells whose fault it is
    }
  }
  if (out.empty()) {
    for (Request& request : requests) out.push_back(run_alone(std::move(request)));
  }
  return out;
}

std::vector<Ended> RunQueue::run_together(std::vector<Request>& requests) {
  const int64_t started_ns = now_ns();
  int64_t rows = 0;
  for (const Request& request : requests) rows += request.rows;
  std::vector<Tensor> inputs;
  for (size_t k = 0; k < requests.front().inputs.size(); ++k) inputs.push_back(joined(requests, k, rows));
  RunTimes times;
  const std::vector<Tensor> outputs = executable_.run(inputs, {.times = &times});
  const int64_t run_ns = now_ns() - started_ns;
  std::vector<Ended> out;
  int64_t begin = 0;
  for (Request& request : requests) {
    const int64_t own = request.rows;
    Ended& ended = out.emplace_back(Ended{.request = std::move(request), .started_ns = started_ns, .run_ns = run_ns});
    for (const Tensor& output : outputs) ended.outputs.push_back(part_of(output, begin, own));
    begin += own;
  }
  out.front().run_rows = rows;
  out.front().busy_us = busy_us(times);
  return out;
}

Ended RunQueue::run_alone(Request request) {
  Ended out{.request = std::move(request), .started_ns = now_ns()};
  try {
    std::unique_ptr<Session> own;
    if (options_.own_states && !out.request.session) own = executable_.session();
    RunTimes times;
    out.outputs =
        executable_.run(out.request.inputs, {.session = own ? own.get() : out.request.session, .times = &times});
    out.run_ns = now_ns() - out.started_ns;
    out.run_rows = out.request.rows;
    out.busy_us = busy_us(times);
  } catch (...) {
    out.error = std::current_exception();
  }
  return out;
}

}  // namespace hetnn::runtime
