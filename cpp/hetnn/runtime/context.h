// What one run owns: memory for the arena and scratch, and a visit for every subprogram.
#pragma once

#include <memory>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/runtime/bound_program.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::runtime {

/// Used by one run at a time; nothing is allocated by a run.
class Context {
 public:
  explicit Context(std::shared_ptr<const BoundProgram> bound);

  /// Runs every subprogram once all that it depends on are done; with `options.overlap` those of different devices at
  /// once. `states` are in the program's order.
  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs, std::span<StateMemory> states,
           const RunOptions& options);
  const std::shared_ptr<const BoundProgram>& bound() const { return bound_; }
  /// Of the memory that it holds.
  int64_t bytes() const { return bytes_; }

 private:
  struct Step {
    Event computed;                // the device is done
    Event done;                    // what waits for the step may begin
    std::unique_ptr<Visit> visit;  // dies before the events
    double start_us = 0, finish_us = 0, queue_us = 0;
    std::vector<CommandTime> commands;
  };
  struct Run;
  void run_step(size_t k, const Run& run);
  void run_lane(const Lane& lane, const Run& run);

  std::shared_ptr<const BoundProgram> bound_;
  AlignedBuffer arena_;
  std::vector<AlignedBuffer> scratch_;  // of every lane
  std::vector<std::byte*> addresses_;   // of every buffer
  std::vector<Step> steps_;             // of every subprogram
  int64_t bytes_;
};

}  // namespace hetnn::runtime
