// Bodies of loops: programs that a command of the general processor runs round after round.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hetnn/ops/meaning.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/runtime/bound_program.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::runtime {

/// The number of the body that the command runs; -1: it runs none that was compiled.
int64_t body_of(const program::Command& command);

/// InvalidModel naming `called` unless the body of the command is among `bodies` and takes and gives what the loop has.
void check_body(const program::Command& command, const program::Program& program, const LoadedBodies& bodies,
                const std::string& called);

/// A body ready for one command; runs of the command share it.
class LoopBody {
 public:
  /// Of a command of `program`, bound to `sizes`.
  LoopBody(const program::Command& command, const program::Program& program,
           const std::shared_ptr<const LoadedProgram>& body, const Sizes& sizes);
  /// What the body gives for the values of a round.
  std::vector<Tensor> run(std::span<const ops::View> round, const RunOptions& options) const;

 private:
  const std::unique_ptr<Executable> executable_;
  const std::vector<size_t> values_;         // of the loop, that the body's inputs are
  std::vector<std::vector<int64_t>> sizes_;  // of its inputs behind those, which hold nothing
};

/// As the meaning of the loop asks for it in one visit.
class BodyOfVisit final : public ops::CompiledBodies {
 public:
  BodyOfVisit(const LoopBody& body, const Launch& launch) : body_(body), launch_(launch) {}
  std::unique_ptr<ops::RunningBody> open(const ops::Call& loop) const override;

 private:
  const LoopBody& body_;
  const Launch& launch_;
};

}  // namespace hetnn::runtime
