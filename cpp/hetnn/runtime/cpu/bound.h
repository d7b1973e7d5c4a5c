// The general processor's code for fixed sizes: a kernel for each command, and for each block of a batch where it lies.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/query/machine.h"
#include "hetnn/ops/sizes.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/runtime/executor.h"
#include "hetnn/runtime/loop_body.h"

namespace hetnn::runtime {

/// A command as its kernel is asked. The first output is of the type that the kernel writes, whatever the steps make of
/// it.
struct Asked {
  std::vector<kernels::TensorView> inputs, outputs;
  kernels::Params params;
  std::vector<kernels::Step> steps;
  kernels::KernelCall call() const { return {inputs, outputs, params, steps}; }
};

/// A command for fixed sizes: a kernel, or the call whose meaning is run.
struct BoundCommand {
  const program::Command& command;
  std::unique_ptr<const ops::BoundCall> call;     // null where a kernel computes it, which has all that it needs
  std::unique_ptr<const kernels::Kernel> kernel;  // null: the meaning computes it
  const kernels::Variant* variant = nullptr;      // the kernel's
  std::unique_ptr<const LoopBody> body = {};      // of a loop that was compiled
  std::optional<int64_t> view = {};               // the kernel's
  std::vector<kernels::Part> parts = {};          // the kernel's
  bool serial = true;
  bool sure = false;      // elementwise work and movements that take all values
  bool is_empty = false;  // nothing to write, and nothing to check
};

class CpuBound final : public BoundCode {
 public:
  CpuBound(const program::Program& program, const program::CpuCode& code, const LoadedBodies& bodies,
           const Sizes& sizes);

  std::vector<int64_t> scratch_bytes() const override;
  std::unique_ptr<Visit> open(std::span<const int64_t> scratch) const override;
  std::vector<CommandTime> described(const kernels::Machine& machine) const override;
  std::vector<BufferView> views() const override;
  std::vector<Overwrite> overwrites() const override;
  size_t sure_from() const override;

  const std::vector<BoundCommand>& commands() const { return commands_; }
  /// What is told of a command besides its times: behind a visit, so that no command waits for it.
  CommandTime described(size_t index, const kernels::Machine& machine = kernels::default_machine()) const;
  /// Commands are run in steps: all of them for the first block, then for the next.
  size_t steps() const { return commands_.size() * static_cast<size_t>(code_.blocks); }
  /// From one block of a buffer to the next.
  int64_t block_bytes(int32_t id) const;
  /// A body uses the threads itself, so that it runs by itself.
  size_t end_of_stretch(size_t from) const;
  const BoundBuffer& buffer(int32_t id) const;
  /// The command as a call, for what is seldom asked.
  std::unique_ptr<const ops::BoundCall> call_of(const program::Command& command) const;
  int threads() const { return all_serial_ ? 1 : threads_; }
  bool keep_denormals() const { return code_.keep_denormals; }
  const program::Program& program() const { return program_; }

 private:
  // A block of a buffer that holds them all, and the distance from one to the next.
  struct Block {
    Block(const BoundBuffer& whole, int64_t blocks);
    BoundBuffer buffer;
    int64_t bytes;
  };

  // What the command's kernel is asked for. Steps may leave the result in another type than the kernel writes.
  Asked asked_of(const program::Command& command, const ops::Call& call, const kernels::Variant& variant) const;
  // Elementwise steps on a call's result; `positions` of the command's inputs among the kernel's.
  std::vector<kernels::Step> steps_of(const program::Command& command, const ops::Call& call,
                                      const std::vector<int>& positions) const;
  BoundCommand bound(const program::Command& command, const std::shared_ptr<const LoadedProgram>& body,
                     const Sizes& sizes) const;

  const int threads_;
  const program::CpuCode& code_;
  const program::Program& program_;
  const std::vector<ops::Type> types_;  // of the program's buffers, as commands have them
  const Bindings bindings_;
  const std::vector<BoundBuffer>& buffers_;
  std::map<int32_t, Block> blocks_;
  bool all_serial_ = true;
  std::vector<BoundCommand> commands_;
};

}  // namespace hetnn::runtime
