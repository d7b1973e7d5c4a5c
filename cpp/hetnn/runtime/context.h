// What one run owns: memory for the arena and scratch, and a visit for every subprogram.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/runtime/bound_program.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::runtime {

/// Used by one run at a time. Nothing is allocated by a run whose sizes its inputs give; otherwise nothing by a run of
/// the same sizes as the one before.
class Context {
 public:
  /// Begins with a program's first phase, bound.
  explicit Context(std::shared_ptr<const BoundPhase> first);

  /// The phase of that number, bound to sizes that came out of the phases before.
  using Bind = std::function<std::shared_ptr<const BoundPhase>(size_t number, const Bindings& bindings)>;

  /// Runs every subprogram once all that it depends on are done; with `options.overlap` those of different devices at
  /// once. `outputs` is asked for each output when its size is known, and `options.may_wait` is called after it was
  /// asked for the first ones, unless the last run was brief. `states` are in the program's order, and hold their new
  /// values when it has returned; when it throws, the old ones.
  /// `around` tells the notices of what is run inside.
  void run(std::span<const ops::View> inputs, ops::Results& outputs, std::span<StateMemory> states,
           const RunOptions& options, Executable& around, const Bind& bind);
  /// Whether it is bound to inputs of these types and shapes.
  bool serves(std::span<const ops::View> inputs) const;
  const std::shared_ptr<const BoundPhase>& first() const { return phases_.front(); }
  /// Of the memory that it holds.
  int64_t bytes() const { return bytes_; }

 private:
  struct VisitState {
    Event computed;                // the device is done
    Event done;                    // what waits for the step may begin
    std::unique_ptr<Visit> visit;  // dies before the events
    double start_us = 0, finish_us = 0, queue_us = 0;
    std::vector<CommandTime> commands;
    std::vector<BodyTimes> bodies;
  };
  struct Run;
  void open(std::shared_ptr<const BoundPhase> bound);
  void enter(const BoundPhase& phase, Run& run);
  void leave(size_t number);
  void run_step(size_t k, Run& run);
  void run_lane(const Lane& lane, Run& run);
  bool falls_back(size_t subprogram) const;
  void report(RunTimes& times) const;
  int64_t counted_bytes() const;
  bool is_brief() const;
  /// Memory for a buffer that outlives its phase.
  std::byte* keep(int32_t buffer, int64_t size_bytes);

  std::vector<std::shared_ptr<const BoundPhase>> phases_;
  AlignedBuffer arena_;                    // as large as the largest phase so far needs
  std::vector<std::byte*> addresses_;      // of every buffer
  std::vector<VisitState> steps_;          // of every subprogram
  std::map<int32_t, AlignedBuffer> kept_;  // by buffer
  std::vector<AlignedBuffer> free_;        // for buffers that will be kept
  const bool finds_;                       // sizes that its inputs do not give
  int64_t bytes_ = 0;
  double last_us_;  // what the last run took, where somebody would know
};

}  // namespace hetnn::runtime
