// A device of a kind of its own, as one file adds it: it computes by the operators' meanings and counts its own time,
// one element a cycle at 100 MHz. The conformance tests take it like any other, because it is registered.
#include "hetnn/backends/backend.h"
#include "hetnn/runtime/executor.h"

namespace hetnn {
namespace {

using runtime::Addresses;
using runtime::DeviceTimes;
using runtime::Event;
using runtime::Launch;
using runtime::Load;
using runtime::Moment;

// Plans and lowers as the reference does, under a name of its own.
class DspBackend final : public backends::Backend {
 public:
  explicit DspBackend(const backends::DeviceSpec& spec)
      : Backend(spec), by_(backends::make_backend({spec.name, "reference", ""})) {}
  target::Support support(const ir::Node& node) const override { return by_->support(node); }
  double time_us(const ir::Node& node, const Bindings& bindings) const override { return by_->time_us(node, bindings); }
  program::Subprogram lower(const ir::Graph& subgraph, backends::Assembler& assembler,
                            const backends::LowerOptions& options) const override {
    program::Subprogram out = by_->lower(subgraph, assembler, options);
    out.code.kind = "dsp";
    return out;
  }

 private:
  std::unique_ptr<backends::Backend> by_;
};

class DspVisit final : public runtime::Visit {
 public:
  DspVisit(std::unique_ptr<runtime::Visit> by, int64_t cycles) : by_(std::move(by)), cycles_(cycles) {}
  int64_t bytes() const override { return by_->bytes(); }
  void upload(Addresses addresses) override { by_->upload(addresses); }
  void start(const Launch& launch, Event& done) override { by_->start(launch, done); }
  void download(Addresses addresses) override { by_->download(addresses); }
  DeviceTimes times() const override { return {cycles_, static_cast<double>(cycles_) / 100}; }

 private:
  std::unique_ptr<runtime::Visit> by_;
  int64_t cycles_;
};

class DspBound final : public runtime::BoundCode {
 public:
  DspBound(std::unique_ptr<const runtime::BoundCode> by, int64_t cycles) : by_(std::move(by)), cycles_(cycles) {}
  std::vector<int64_t> scratch_bytes() const override { return by_->scratch_bytes(); }
  std::unique_ptr<runtime::Visit> open(std::span<const int64_t> scratch) const override {
    return std::make_unique<DspVisit>(by_->open(scratch), cycles_);
  }

 private:
  std::unique_ptr<const runtime::BoundCode> by_;
  int64_t cycles_;
};

class Dsp final : public runtime::Executor {
 public:
  explicit Dsp(const Load& load) : subprogram_(load.subprogram), as_cpu_(load.subprogram) {
    as_cpu_.code.kind = "cpu";
    by_ = runtime::load_executor({load.program, as_cpu_, load.called, as_cpu_.code, load.bodies});
  }
  std::vector<Moment> moments() const override { return by_->moments(); }
  std::unique_ptr<const runtime::BoundCode> bind(const runtime::Sizes& sizes) const override {
    int64_t cycles = 0;
    for (const int32_t id : subprogram_.outputs) cycles += sizes.buffers[static_cast<size_t>(id)].view.elems();
    return std::make_unique<DspBound>(by_->bind(sizes), cycles);
  }

 private:
  const program::Subprogram& subprogram_;
  program::Subprogram as_cpu_;
  std::unique_ptr<const runtime::Executor> by_;
};

const bool registered = [] {
  backends::register_backend("dsp", [](const backends::DeviceSpec& spec) -> std::unique_ptr<backends::Backend> {
    return std::make_unique<DspBackend>(spec);
  });
  runtime::register_executor(
      "dsp", [](const Load& load) -> std::unique_ptr<const runtime::Executor> { return std::make_unique<Dsp>(load); });
  return true;
}();

}  // namespace
}  // namespace hetnn
