// Runs one variant of an npu subprogram on a simulated machine.
#pragma once

#include <memory>
#include <vector>

#include "hetnn/program/program.h"
#include "hetnn/runtime/bound_program.h"

namespace hetnn::runtime {

/// A machine with the variant's constants loaded; used by one run at a time.
class NpuExecutor {
 public:
  /// The program must outlive the executor. Throws what the machine throws for code that is not sound.
  NpuExecutor(const program::Program& program, const program::Subprogram& subprogram,
              const program::NpuVariant& variant);
  ~NpuExecutor();

  /// Copies the inputs to the machine's memory, runs its command stream, and copies the outputs back.
  void run(const std::vector<std::byte*>& addresses, const std::vector<BoundBuffer>& buffers);
  /// Of the last run.
  int64_t cycles() const;
  double simulated_us() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hetnn::runtime
