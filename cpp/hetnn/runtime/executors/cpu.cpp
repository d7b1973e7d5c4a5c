// The general processor's executor: code that was read, and when its buffers are in use.
#include <algorithm>
#include <iterator>

#include "hetnn/kernels/isa.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/runtime/cpu/bound.h"

namespace hetnn::runtime {
namespace {

class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(const Load& load)
      : program_(load.program),
        code_(program::read_cpu_code(load.code, load.subprogram, load.program, load.called)),
        bodies_(load.bodies) {
    kernels::chosen_isa();  // throws where HETNN_TARGET names no instructions of this machine
    for (const program::Command& command : code_.commands) check_body(command, load.program, bodies_, load.called);
    for (const program::Command& command : code_.commands) written_.push_back(command.outputs);
    if (code_.blocks == 1 || written_.empty()) return;
    // What holds all blocks is there from the first command of the first block to the last of the last.
    const auto holds_all = [&](int32_t id) { return std::ranges::find(code_.in_blocks, id) != code_.in_blocks.end(); };
    std::vector<int32_t> outputs;
    for (std::vector<int32_t>& each : written_) {
      std::ranges::copy_if(each, std::back_inserter(outputs), holds_all);
      std::erase_if(each, holds_all);
    }
    written_.front().insert(written_.front().end(), outputs.begin(), outputs.end());
    kept_ = load.subprogram.inputs;
  }
  std::vector<Moment> moments() const override {
    std::vector<Moment> out;
    for (size_t k = 0; k < written_.size(); ++k) out.push_back({code_.commands[k].inputs, written_[k]});
    if (!kept_.empty()) out.push_back({kept_, {}});
    return out;
  }
  std::unique_ptr<const BoundCode> bind(const Sizes& sizes) const override {
    return std::make_unique<CpuBound>(program_, code_, bodies_, sizes);
  }
  bool one_at_a_time() const override { return false; }  // the pool of threads bounds what runs at once

 private:
  const program::Program& program_;
  const program::CpuCode code_;
  const LoadedBodies bodies_;
  std::vector<std::vector<int32_t>> written_;  // by each command; what holds all blocks by the first
  std::vector<int32_t> kept_;                  // inputs that are read again for the next block
};

}  // namespace

std::unique_ptr<const Executor> load_cpu(const Load& load) { return std::make_unique<CpuExecutor>(load); }

}  // namespace hetnn::runtime
