// Runs a bound program: kernels in one parallel region a cpu subprogram, machines for accelerators.
#include "hetnn/runtime/context.h"

#include <algorithm>
#include <chrono>

#include "hetnn/base/error.h"

namespace hetnn::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

}  // namespace

Context::Context(std::shared_ptr<const BoundProgram> bound)
    : bound_(std::move(bound)),
      arena_(static_cast<size_t>(bound_->arena_bytes)),
      scratch_(static_cast<size_t>(bound_->scratch_bytes)),
      barrier_(bound_->threads),
      addresses_(bound_->buffers.size(), nullptr) {
  const program::Program& program = *bound_->program;
  for (size_t k = 0; k < addresses_.size(); ++k) {
    const program::Buffer& buffer = program.buffers[k];
    if (buffer.place == program::Place::constant) {
      // Kernels only read constants; the pointer's type is that of all buffers.
      addresses_[k] = const_cast<std::byte*>(program.weights.bytes.data()) + buffer.offset_bytes;
    } else if (buffer.place == program::Place::arena) {
      addresses_[k] = arena_.data() + bound_->buffers[k].arena_offset_bytes;
    }
  }
  for (const BoundSubprogram& subprogram : bound_->subprograms) {
    std::vector<Pointers>& list = pointers_.emplace_back();
    for (const BoundCommand& command : subprogram.commands) {
      list.push_back({std::vector<const std::byte*>(command.command->inputs.size()),
                      std::vector<std::byte*>(command.command->outputs.size())});
    }
    npus_.push_back(subprogram.variant
                        ? std::make_unique<NpuExecutor>(program, *subprogram.subprogram, *subprogram.variant)
                        : nullptr);
  }
}

void Context::set_pointers(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                           std::span<const StatePointers> states) {
  const program::Program& program = *bound_->program;
  for (size_t k = 0; k < inputs.size(); ++k)
    addresses_[static_cast<size_t>(program.inputs[k].buffer)] = const_cast<std::byte*>(inputs[k]);
  for (size_t k = 0; k < outputs.size(); ++k) addresses_[static_cast<size_t>(program.outputs[k].buffer)] = outputs[k];
  for (size_t k = 0; k < states.size(); ++k) {
    addresses_[static_cast<size_t>(program.states[k].input)] = const_cast<std::byte*>(states[k].now);
    addresses_[static_cast<size_t>(program.states[k].output)] = states[k].next;
  }
  for (size_t s = 0; s < pointers_.size(); ++s) {
    for (size_t c = 0; c < pointers_[s].size(); ++c) {
      const program::Command& command = *bound_->subprograms[s].commands[c].command;
      for (size_t k = 0; k < command.inputs.size(); ++k)
        pointers_[s][c].inputs[k] = addresses_[static_cast<size_t>(command.inputs[k])];
      for (size_t k = 0; k < command.outputs.size(); ++k)
        pointers_[s][c].outputs[k] = addresses_[static_cast<size_t>(command.outputs[k])];
    }
  }
}

void Context::run_cpu(const BoundSubprogram& subprogram, std::vector<Pointers>& pointers, RunTimes* times) {
  const int threads = bound_->threads;
  std::vector<CommandTime>* const commands = times ? &times->commands : nullptr;
  // Thread t runs its share of every command. A serial command is thread 0's alone, and needs a barrier only towards
  // commands that the others take part in.
  auto work = [&](int thread) {
    bool all_here = true;  // every thread has seen what was written so far
    for (size_t k = 0; k < subprogram.commands.size(); ++k) {
      const BoundCommand& command = subprogram.commands[k];
      const auto begin = commands ? Clock::now() : Clock::time_point();
      if (command.serial) {
        if (thread == 0) {
          SpinBarrier alone(1);
          command.kernel->run({0, 1, alone, scratch_.data()}, pointers[k].inputs.data(), pointers[k].outputs.data());
        }
        all_here = false;
      } else {
        if (!all_here && threads > 1) barrier_.arrive_and_wait();
        command.kernel->run({thread, threads, barrier_, scratch_.data()}, pointers[k].inputs.data(),
                            pointers[k].outputs.data());
        if (threads > 1) barrier_.arrive_and_wait();
        all_here = true;
      }
      if (commands && thread == 0)
        commands->push_back({command.command->node, command.command->kernel, us_since(begin)});
    }
  };
  if (threads == 1 || std::all_of(subprogram.commands.begin(), subprogram.commands.end(),
                                  [](const BoundCommand& command) { return command.serial; })) {
    work(0);
  } else {
    parallel_region(threads, work);
  }
}

void Context::run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                  std::span<const StatePointers> states, RunTimes* times, bool time_commands,
                  const Interpreter* interpreter) {
  set_pointers(inputs, outputs, states);
  for (size_t s = 0; s < bound_->subprograms.size(); ++s) {
    const BoundSubprogram& subprogram = bound_->subprograms[s];
    const auto begin = Clock::now();
    SubprogramTime time{subprogram.subprogram->name, subprogram.subprogram->device};
    if (npus_[s]) {
      npus_[s]->run(addresses_, bound_->buffers);
      time.cycles = npus_[s]->cycles();
      time.simulated_us = npus_[s]->simulated_us();
    } else if (std::holds_alternative<program::CpuCode>(subprogram.subprogram->code)) {
      run_cpu(subprogram, pointers_[s], time_commands ? times : nullptr);
    } else if (std::holds_alternative<program::ReferenceCode>(subprogram.subprogram->code)) {
      run_reference(*bound_->program, *subprogram.subprogram, addresses_, bound_->buffers, interpreter);
    } else {
      throw Unsupported(text("subprogram '", subprogram.subprogram->name, "' is on the device '",
                             subprogram.subprogram->device,
                             "', which plans and runs nothing. Compile for a target whose devices run."));
    }
    if (times) {
      time.wall_us = us_since(begin);
      times->subprograms.push_back(std::move(time));
    }
  }
}

}  // namespace hetnn::runtime
