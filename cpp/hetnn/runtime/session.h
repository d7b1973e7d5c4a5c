// What a model with states keeps from run to run for one user.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/aligned_buffer.h"
#include "hetnn/base/fair_semaphore.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/program/program.h"

namespace hetnn::runtime {

/// `next` is allocated by the first run that writes the state apart, and not in its place.
struct StateMemory {
  AlignedBuffer now, next;
};

/// The states of a program. Runs of one session happen one after another, each on the states that the one before it
/// left; a run that throws leaves them as they were. A state is written over its old value where no run can end between
/// the first such write and the last (runtime/in_place.h), else beside it. Sessions share nothing that is
/// written.
class Session {
 public:
  explicit Session(std::shared_ptr<const program::Program> program);

  /// Gives every state its initial value again.
  void reset();
  /// A copy of what a state holds now, or what it is to hold in the next run; after the run that is under way.
  /// InvalidModel for a name that no state has, or a value of another type or shape.
  Tensor read(std::string_view name);
  void write(std::string_view name, const ops::View& value);
  /// A form of the program, with what the states hold now as their initial values.
  program::Program put_into(program::Program program);
  /// Of the memory that it holds.
  int64_t bytes();
  /// Whether the states are those of this program.
  bool fits(const program::Program& program) const { return program.states == program_->states; }

 private:
  friend class Executable;
  size_t place_of(std::string_view name) const;
  Tensor copy_of(size_t state) const;

  const std::shared_ptr<const program::Program> program_;
  FairSemaphore admissions_{1};  // a run
  std::vector<StateMemory> states_;
};

}  // namespace hetnn::runtime
