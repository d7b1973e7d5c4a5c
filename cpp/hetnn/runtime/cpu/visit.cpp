// Runs bound commands: pointers for each step, the threads' shares, what was told of their times.
#include "hetnn/runtime/cpu/visit.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "hetnn/base/denormals.h"
#include "hetnn/base/error.h"
#include "hetnn/base/progress.h"
#include "hetnn/kernels/refusal.h"

namespace hetnn::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kNever = std::numeric_limits<int>::max();

double us(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

// A meaning's results go where the program wants them. Sizes that come out of values are told.
class InPlace final : public ops::FoundResults {
 public:
  InPlace(const BoundCommand& command, const std::vector<std::byte*>& outputs, const program::Program& program,
          FoundSizes* found)
      : command_(command), outputs_(outputs), program_(program), found_(found) {}
  void define(std::string_view symbol, int64_t value) override {
    ops::check_range(command_.call->call(), *std::ranges::find(program_.symbols, symbol, &Symbol::name), value);
    found_->define(symbol, value);
  }
  std::byte* allocate(size_t index, DType, std::span<const int64_t> shape) override {
    const Shape& planned = command_.call->call().output(index).shape;
    if (!is_static(planned)) return found_->allocate(command_.command.outputs[index], shape);
    const Shape made(shape.begin(), shape.end());
    HETNN_ASSERT(made == planned, ops::describe(command_.call->call()), " writes ", to_string(made),
                 " where it infers ", to_string(planned));
    return outputs_[index];
  }

 private:
  const BoundCommand& command_;
  const std::vector<std::byte*>& outputs_;
  const program::Program& program_;
  FoundSizes* const found_;  // null where the subprogram defines no symbols
};

}  // namespace

CpuVisit::CpuVisit(const CpuBound& bound, std::span<const int64_t> scratch)
    : bound_(bound), scratch_(scratch), steps_(bound.steps()) {
  for (size_t step = 0; step < steps_.size(); ++step) {
    Step& made = steps_[step];
    made.number = step % bound.commands().size();
    made.command = &bound.commands()[made.number];
    const BoundCommand& bound_command = *made.command;
    const program::Command& command = bound_command.command;
    const auto block = static_cast<int64_t>(step / bound.commands().size());
    const auto offset = [&](int32_t id) { return block * bound.block_bytes(id); };
    made.outputs.resize(command.outputs.size());
    for (size_t k = 0; k < command.outputs.size(); ++k)
      written_.push_back({command.outputs[k], offset(command.outputs[k]), &made.outputs[k]});
    made.inputs.resize(static_cast<size_t>(std::ranges::count_if(command.inputs, [](int32_t id) { return id >= 0; })));
    if (!bound_command.kernel || command.op->check) made.views.resize(command.inputs.size());
    size_t present = 0;
    for (size_t k = 0; k < command.inputs.size(); ++k) {
      const int32_t id = command.inputs[k];
      if (id < 0) continue;
      read_.push_back({id, offset(id), &made.inputs[present++]});
      if (made.views.empty()) continue;
      made.views[k] = ops::View(bound.buffer(id).view.dtype, bound.buffer(id).shape, nullptr);
      read_.push_back({id, offset(id), &made.views[k].data});
    }
  }
}

void CpuVisit::upload(Addresses addresses) {
  const auto place = [&](const auto& each) {
    std::byte* const begin = addresses[static_cast<size_t>(each.buffer)];
    *each.at = begin ? begin + each.offset_bytes : nullptr;
  };
  std::ranges::for_each(read_, place);
  std::ranges::for_each(written_, place);
}

void CpuVisit::start(const Launch& launch, Event& done) {
  found_ = launch.found;
  last_barrier_.store(kNever, std::memory_order_relaxed);
  refused_.store(false, std::memory_order_relaxed);
  const auto begin = launch.commands ? Clock::now() : Clock::time_point();
  const auto threads = static_cast<size_t>(bound_.threads());
  if (launch.commands) thread_us_.assign(steps_.size() * threads, 0);
  for (size_t from = 0, to = 0; from < steps_.size(); from = to) {
    to = bound_.end_of_stretch(from);
    parallel_region_up_to(steps_[from].command->body ? 1 : bound_.threads(), [&](int thread, SpinBarrier& barrier) {
      run_share(thread, barrier, {from, to, begin}, launch);
    });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    if (last_barrier_.load(std::memory_order_relaxed) != kNever) launch.stop->check();
  }
  for (size_t k = 0; launch.commands && k < steps_.size(); ++k) {
    const auto first = thread_us_.begin() + static_cast<std::ptrdiff_t>(k * threads);
    CommandTime& time = (*launch.commands)[k];
    time.thread_us.assign(first, first + static_cast<std::ptrdiff_t>(threads));
  }
  if (launch.commands) join_blocks(*launch.commands);
  done.set();
}

// The other threads wait at barriers, so an error is kept until all are through.
template <typename Body>
void CpuVisit::guarded(const Body& body) {
  try {
    if (!failure_) body();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

// What is told of commands, each for all blocks.
void CpuVisit::join_blocks(std::vector<CommandTime>& times) {
  const size_t count = bound_.commands().size();
  for (size_t step = count; step < times.size(); ++step) {
    CommandTime& all = times[step % count];
    all.wall_us += times[step].wall_us;
    std::ranges::transform(all.thread_us, times[step].thread_us, all.thread_us.begin(), std::plus());
  }
  times.resize(std::min(times.size(), count));
  for (size_t k = 0; k < times.size(); ++k) {
    CommandTime told = bound_.described(k);
    told.start_us = times[k].start_us;
    told.wall_us = times[k].wall_us;
    told.thread_us = std::move(times[k].thread_us);
    if (lies_there(k)) told.kernel = "view";
    times[k] = std::move(told);
  }
}

// Whether a view was placed where it would be copied from, or all parts where they would be copied to.
bool CpuVisit::lies_there(size_t index) const {
  const Step& step = steps_[index];
  if (const std::optional<int64_t>& view = step.command->view) return step.inputs[0] + *view == step.outputs[0];
  const std::vector<kernels::Part>& parts = step.command->parts;
  return !parts.empty() && parts.size() == step.inputs.size() &&
         std::ranges::all_of(parts, [&](const kernels::Part& part) {
           return step.inputs[static_cast<size_t>(part.input)] == step.outputs[0] + part.offset_bytes;
         });
}

// A kernel that refused has a check that says why.
void CpuVisit::tell_refused(size_t index) {
  if (!refused_.load(std::memory_order_relaxed)) return;
  const auto call = bound_.call_of(steps_[index].command->command);
  guarded([&] { kernels::tell_refused(call->call(), steps_[index].views); });
}

void CpuVisit::run_alone(size_t index, const Launch& launch) {
  Step& step = steps_[index];
  const BoundCommand& command = *step.command;
  guarded([&] {
    if (!command.kernel) {
      const ops::Call& call = command.call->call();
      InPlace results(command, step.outputs, bound_.program(), found_);
      if (!command.body) return ops::evaluate(call, step.views, results, {launch.stop, nullptr});
      const BodyOfVisit body(*command.body, launch);
      return ops::evaluate(call, step.views, results, {launch.stop, &body});
    }
    SpinBarrier alone(1);
    command.kernel->run({0, 1, alone, launch.arena + scratch_[step.number], &refused_}, step.inputs.data(),
                        step.outputs.data());
  });
  tell_refused(index);
}

// A thread's share of every command. A serial command is thread 0's alone, and needs a barrier only towards commands
// that the others take part in. Thread 0 asks whether to stop, and knows what failed; at the next barrier all leave.
void CpuVisit::run_share(int thread, SpinBarrier& barrier, const Stretch& stretch, const Launch& launch) {
  const DenormalsAsZeros denormals(!bound_.keep_denormals());
  std::vector<CommandTime>* const times = launch.commands;
  bool stops = false;
  int met = 0;
  const auto meet = [&] {
    ++met;
    if (stops) last_barrier_.store(met, std::memory_order_relaxed);
    barrier.arrive_and_wait();
    // Thread 0 may be ahead, and have named a later one.
    return met < last_barrier_.load(std::memory_order_relaxed);
  };
  bool all_here = true;  // every thread has seen what was written so far
  for (size_t k = stretch.from; k < stretch.to; ++k) {
    const Step& step = steps_[k];
    const BoundCommand& command = *step.command;
    if (thread == 0) announce_parts(k, steps_.size());
    if (thread == 0 && !stops) stops = failure_ || (launch.stop && k < launch.unstopped_from && launch.stop->asked());
    if (k == launch.unstopped_from) all_here = false;  // nobody begins before it is known
    const auto begin = times ? Clock::now() : Clock::time_point();
    if (command.is_empty || lies_there(k)) {
      if (times && thread == 0) times->push_back({.start_us = us(begin - stretch.begin)});
      continue;
    }
    const auto compute = [&](const auto& share) {
      const auto from = times ? Clock::now() : Clock::time_point();
      share();
      if (times)
        thread_us_[k * static_cast<size_t>(bound_.threads()) + static_cast<size_t>(thread)] = us(Clock::now() - from);
    };
    if (command.serial) {
      if (thread == 0 && !stops) compute([&] { run_alone(k, launch); });
      all_here = false;
    } else {
      if (!all_here && !meet()) return;
      all_here = true;
      compute([&] {
        command.kernel->run({thread, barrier.threads(), barrier, launch.arena + scratch_[step.number], &refused_},
                            step.inputs.data(), step.outputs.data());
      });
      if (!meet()) return;
      if (thread == 0) tell_refused(k);
    }
    if (times && thread == 0)
      times->push_back({.start_us = us(begin - stretch.begin), .wall_us = us(Clock::now() - begin)});
  }
  if (stops) last_barrier_.store(met, std::memory_order_relaxed);
}

}  // namespace hetnn::runtime
