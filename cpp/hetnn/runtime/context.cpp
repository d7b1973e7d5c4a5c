// Runs a bound program: one visit to a device after another.
#include "hetnn/runtime/context.h"

#include <chrono>

#include "hetnn/base/error.h"

namespace hetnn::runtime {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Context::Context(std::shared_ptr<const BoundProgram> bound)
    : bound_(std::move(bound)),
      arena_(static_cast<size_t>(bound_->arena_bytes)),
      scratch_(static_cast<size_t>(bound_->scratch_bytes)),
      addresses_(bound_->buffers.size(), nullptr),
      steps_(bound_->codes.size()) {
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
  for (size_t k = 0; k < steps_.size(); ++k)
    steps_[k].visit = bound_->codes[k]->open({scratch_.data(), static_cast<size_t>(bound_->scratch_bytes)});
}

void Context::run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                  std::span<const StatePointers> states, RunTimes* times, bool time_commands,
                  const Interpreter* interpreter) {
  const program::Program& program = bound_->program();
  for (size_t k = 0; k < inputs.size(); ++k)
    addresses_[static_cast<size_t>(program.inputs[k].buffer)] = const_cast<std::byte*>(inputs[k]);
  for (size_t k = 0; k < outputs.size(); ++k) addresses_[static_cast<size_t>(program.outputs[k].buffer)] = outputs[k];
  for (size_t k = 0; k < states.size(); ++k) {
    addresses_[static_cast<size_t>(program.states[k].input)] = const_cast<std::byte*>(states[k].now);
    addresses_[static_cast<size_t>(program.states[k].output)] = states[k].next;
  }
  const Launch launch{times && time_commands ? &times->commands : nullptr, interpreter};
  for (size_t k = 0; k < steps_.size(); ++k) {
    Step& step = steps_[k];
    const auto begin = Clock::now();
    step.done.clear();
    step.visit->upload(addresses_);
    step.visit->start(launch, step.done);
    step.done.wait();
    step.visit->download(addresses_);
    if (times) {
      const DeviceTimes own = step.visit->times();
      times->subprograms.push_back({program.subprograms[k].name, program.subprograms[k].device,
                                    std::chrono::duration<double, std::micro>(Clock::now() - begin).count(), own.cycles,
                                    own.simulated_us});
    }
  }
}

}  // namespace hetnn::runtime
