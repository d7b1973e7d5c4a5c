// Runs the general processor's code: kernels one after another, in one parallel region a visit.
#include <algorithm>
#include <chrono>

#include "hetnn/base/error.h"
#include "hetnn/base/parallel.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/runtime/executor.h"

namespace hetnn::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double us(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

kernels::Params bind_params(const program::Params& params, const Bindings& bindings) {
  kernels::Params out;
  for (const auto& [name, value] : params) {
    if (auto* dim = std::get_if<Dim>(&value)) {
      out.set(name, dim->evaluate(bindings));
    } else if (auto* dims = std::get_if<std::vector<Dim>>(&value)) {
      out.set(name, evaluate(*dims, bindings));
    } else if (auto* real = std::get_if<double>(&value)) {
      out.set(name, *real);
    } else if (auto* reals = std::get_if<std::vector<double>>(&value)) {
      out.set(name, *reals);
    } else {
      out.set(name, std::get<std::string>(value));
    }
  }
  return out;
}

struct BoundCommand {
  const program::Command& command;
  std::unique_ptr<const kernels::Kernel> kernel;
  bool serial = false;
};

class CpuBound;

class CpuVisit final : public Visit {
 public:
  CpuVisit(const CpuBound& bound, std::span<std::byte> scratch);
  void upload(Addresses addresses) override;
  void start(const Launch& launch, Event& done) override;
  void download(Addresses) override {}

 private:
  struct Pointers {
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
  };
  void run_share(int thread, SpinBarrier& barrier, std::vector<CommandTime>* times);

  const CpuBound& bound_;
  std::byte* const scratch_;
  std::vector<Pointers> pointers_;  // of every command
};

class CpuBound final : public BoundCode {
 public:
  CpuBound(const program::CpuCode& code, const Sizes& sizes) : threads_(sizes.threads) {
    const auto views = [&](const std::vector<int32_t>& ids) {
      std::vector<kernels::TensorView> list;
      list.reserve(ids.size());
      for (int32_t id : ids) list.push_back(sizes.buffers[static_cast<size_t>(id)].view);
      return list;
    };
    for (const program::Command& command : code.commands) {
      const kernels::KernelFamily* family = kernels::find_kernel(command.kernel);
      if (!family) {
        throw Unsupported(text("the executable uses the kernel '", command.kernel,
                               "', which this version of hetnn does not have. Compile the model again."));
      }
      const auto inputs = views(command.inputs), outputs = views(command.outputs);
      const kernels::Params params = bind_params(command.params, sizes.bindings);
      BoundCommand made{command, family->create({inputs, outputs, params})};
      made.serial = made.kernel->serial();
      all_serial_ = all_serial_ && made.serial;
      // A visit gets as many threads as are idle.
      for (int threads = 1; threads <= (made.serial ? 1 : threads_); ++threads)
        scratch_bytes_ = std::max(scratch_bytes_, made.kernel->scratch_bytes(threads));
      commands_.push_back(std::move(made));
    }
  }

  std::vector<Moment> moments() const override {
    std::vector<Moment> out;
    for (const BoundCommand& c : commands_) out.push_back({c.command.inputs, c.command.outputs});
    return out;
  }
  int64_t scratch_bytes() const override { return scratch_bytes_; }
  std::unique_ptr<Visit> open(std::span<std::byte> scratch) const override {
    return std::make_unique<CpuVisit>(*this, scratch);
  }
  const std::vector<BoundCommand>& commands() const { return commands_; }
  int threads() const { return all_serial_ ? 1 : threads_; }

 private:
  const int threads_;
  bool all_serial_ = true;
  int64_t scratch_bytes_ = 0;
  std::vector<BoundCommand> commands_;
};

CpuVisit::CpuVisit(const CpuBound& bound, std::span<std::byte> scratch) : bound_(bound), scratch_(scratch.data()) {
  for (const BoundCommand& c : bound.commands()) {
    pointers_.push_back(
        {std::vector<const std::byte*>(c.command.inputs.size()), std::vector<std::byte*>(c.command.outputs.size())});
  }
}

void CpuVisit::upload(Addresses addresses) {
  for (size_t c = 0; c < pointers_.size(); ++c) {
    const program::Command& command = bound_.commands()[c].command;
    for (size_t k = 0; k < command.inputs.size(); ++k)
      pointers_[c].inputs[k] = addresses[static_cast<size_t>(command.inputs[k])];
    for (size_t k = 0; k < command.outputs.size(); ++k)
      pointers_[c].outputs[k] = addresses[static_cast<size_t>(command.outputs[k])];
  }
}

void CpuVisit::start(const Launch& launch, Event& done) {
  parallel_region_up_to(bound_.threads(),
                        [&](int thread, SpinBarrier& barrier) { run_share(thread, barrier, launch.commands); });
  done.set();
}

// A thread's share of every command. A serial command is thread 0's alone, and needs a barrier only towards commands
// that the others take part in.
void CpuVisit::run_share(int thread, SpinBarrier& barrier, std::vector<CommandTime>* times) {
  const int threads = barrier.threads();
  const auto visit_begin = times ? Clock::now() : Clock::time_point();
  bool all_here = true;  // every thread has seen what was written so far
  for (size_t k = 0; k < pointers_.size(); ++k) {
    const BoundCommand& command = bound_.commands()[k];
    const auto begin = times ? Clock::now() : Clock::time_point();
    if (command.serial) {
      if (thread == 0) {
        SpinBarrier alone(1);
        command.kernel->run({0, 1, alone, scratch_}, pointers_[k].inputs.data(), pointers_[k].outputs.data());
      }
      all_here = false;
    } else {
      if (!all_here && threads > 1) barrier.arrive_and_wait();
      command.kernel->run({thread, threads, barrier, scratch_}, pointers_[k].inputs.data(),
                          pointers_[k].outputs.data());
      if (threads > 1) barrier.arrive_and_wait();
      all_here = true;
    }
    if (times && thread == 0) {
      times->push_back(
          {command.command.node, command.command.kernel, us(begin - visit_begin), us(Clock::now() - begin)});
    }
  }
}

class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(const Load& load)
      : code_(program::read_cpu_code(load.subprogram.code, load.program, load.called)) {}
  std::unique_ptr<const BoundCode> bind(const Sizes& sizes) const override {
    return std::make_unique<CpuBound>(code_, sizes);
  }

 private:
  const program::CpuCode code_;
};

}  // namespace

std::unique_ptr<const Executor> load_cpu(const Load& load) { return std::make_unique<CpuExecutor>(load); }

}  // namespace hetnn::runtime
