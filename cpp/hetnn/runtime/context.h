// What one run owns: memory for the arena and scratch, and a visit for every subprogram.
#pragma once

#include <memory>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/runtime/bound_program.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::runtime {

/// Where a run reads a state and where it writes the next value.
struct StatePointers {
  const std::byte* now;
  std::byte* next;
};

/// Used by one run at a time; nothing is allocated by a run.
class Context {
 public:
  explicit Context(std::shared_ptr<const BoundProgram> bound);

  /// `states` are in the program's order. `interpreter` serves reference subprograms, and may be null where there are
  /// none.
  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
           std::span<const StatePointers> states, RunTimes* times, bool time_commands, const Interpreter* interpreter);
  const std::shared_ptr<const BoundProgram>& bound() const { return bound_; }

 private:
  struct Step {
    std::unique_ptr<Visit> visit;
    Event done;
  };

  std::shared_ptr<const BoundProgram> bound_;
  AlignedBuffer arena_;
  AlignedBuffer scratch_;
  std::vector<std::byte*> addresses_;  // of every buffer
  std::vector<Step> steps_;            // of every subprogram
};

}  // namespace hetnn::runtime
