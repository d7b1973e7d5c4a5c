// Runs a bound program: visits to devices, in order or at once.
#include "hetnn/runtime/context.h"

#include <chrono>

#include "hetnn/base/error.h"
#include "hetnn/base/parallel.h"

namespace hetnn::runtime {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct Context::Run {
  bool timed, time_commands;
  const Stop* stop;
  Clock::time_point begin = timed ? Clock::now() : Clock::time_point();

  double now_us() const { return timed ? std::chrono::duration<double, std::micro>(Clock::now() - begin).count() : 0; }
};

Context::Context(std::shared_ptr<const BoundProgram> bound)
    : bound_(std::move(bound)),
      arena_(static_cast<size_t>(bound_->arena_bytes)),
      addresses_(bound_->buffers.size(), nullptr),
      steps_(bound_->codes.size()),
      bytes_(bound_->arena_bytes) {
  const program::Program& program = bound_->program();
  for (size_t k = 0; k < addresses_.size(); ++k) {
    const program::Buffer& buffer = program.buffers[k];
    if (buffer.place == program::Place::constant) {
      // Devices only read constants; the pointer's type is that of all buffers.
      addresses_[k] = const_cast<std::byte*>(program.weights.at(buffer.offset_bytes, buffer.size_bytes).data());
    } else if (buffer.place == program::Place::arena) {
      addresses_[k] = arena_.data() + bound_->buffers[k].arena_offset_bytes;
    }
  }
  for (const Lane& lane : bound_->lanes) {
    const AlignedBuffer& scratch = scratch_.emplace_back(static_cast<size_t>(lane.scratch_bytes));
    for (const int k : lane.steps) {
      const auto step = static_cast<size_t>(k);
      steps_[step].visit = bound_->codes[step]->open({scratch.data(), static_cast<size_t>(lane.scratch_bytes)});
      bytes_ += steps_[step].visit->bytes();
    }
    bytes_ += lane.scratch_bytes;
  }
}

void Context::run_step(size_t k, const Run& run) {
  Turns* const queue = bound_->queues[k];
  Step& step = steps_[k];
  if (run.stop) run.stop->check();
  const double ready_us = run.now_us();
  if (queue) queue->enter(run.stop);
  const Turn turn(queue);
  step.start_us = run.now_us();
  step.queue_us = step.start_us - ready_us;
  step.computed.clear();
  step.visit->upload(addresses_);
  step.visit->start({run.time_commands ? &step.commands : nullptr, run.stop}, step.computed);
  step.computed.wait(run.stop);
  step.visit->download(addresses_);
  step.finish_us = run.now_us();
}

// The steps of one device in turn, each when what it depends on is done. All lanes run at once, and steps stand in an
// order in which they could run one after another, so that none waits for ever. A step that fails fails those after it.
void Context::run_lane(const Lane& lane, const Run& run) {
  std::exception_ptr error;
  for (const int k : lane.steps) {
    Step& step = steps_[static_cast<size_t>(k)];
    try {
      if (error) std::rethrow_exception(error);
      for (const int32_t earlier : bound_->program().subprograms[static_cast<size_t>(k)].depends_on)
        steps_[static_cast<size_t>(earlier)].done.wait(run.stop);
      run_step(static_cast<size_t>(k), run);
      step.done.set();
    } catch (...) {
      error = std::current_exception();
      step.done.fail(error);
    }
  }
  if (error) std::rethrow_exception(error);
}

void Context::run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                  std::span<StateMemory> states, const RunOptions& options) {
  const program::Program& program = bound_->program();
  for (size_t k = 0; k < inputs.size(); ++k)
    addresses_[static_cast<size_t>(program.inputs[k].buffer)] = const_cast<std::byte*>(inputs[k]);
  for (size_t k = 0; k < outputs.size(); ++k) addresses_[static_cast<size_t>(program.outputs[k].buffer)] = outputs[k];
  for (size_t k = 0; k < states.size(); ++k) {
    addresses_[static_cast<size_t>(program.states[k].input)] = states[k].now.data();
    addresses_[static_cast<size_t>(program.states[k].output)] = states[k].next.data();
  }
  const Run run{options.times != nullptr, options.times && options.time_commands, options.stop};
  for (Step& step : steps_) step.commands.clear();
  if (options.overlap && bound_->overlaps) {
    for (Step& step : steps_) step.done.clear();
    parallel_region(static_cast<int>(bound_->lanes.size()), [&](int lane) {
      run_lane(bound_->lanes[static_cast<size_t>(lane)], run);
      // The caller's thread has more to do than to wait for the others' end.
      if (lane == 0 && run.stop) {
        for (const Step& step : steps_) step.done.wait(run.stop);
      }
    });
  } else {
    for (size_t k = 0; k < steps_.size(); ++k) run_step(k, run);
  }
  if (!options.times) return;
  options.times->subprograms.clear();
  options.times->commands.clear();
  for (size_t k = 0; k < steps_.size(); ++k) {
    const Step& step = steps_[k];
    const DeviceTimes own = step.visit->times();
    options.times->subprograms.push_back({program.subprograms[k].name, program.subprograms[k].device, step.start_us,
                                          step.finish_us, step.queue_us, own.cycles, own.simulated_us});
    for (const CommandTime& command : step.commands) {
      options.times->commands.push_back(command);
      options.times->commands.back().start_us += step.start_us;
    }
  }
}

}  // namespace hetnn::runtime
