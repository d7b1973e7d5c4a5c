// The dsp: one element a cycle at 100 MHz.
#include "dsp.h"

namespace hetnn::runtime {
namespace {

class DspVisit final : public Visit {
 public:
  DspVisit(std::unique_ptr<Visit> by, int64_t cycles) : by_(std::move(by)), cycles_(cycles) {}
  int64_t bytes() const override { return by_->bytes(); }
  void upload(Addresses addresses) override { by_->upload(addresses); }
  void start(const Launch& launch, Event& done) override { by_->start(launch, done); }
  void download(Addresses addresses) override { by_->download(addresses); }
  DeviceTimes times() const override { return {cycles_, static_cast<double>(cycles_) / 100}; }

 private:
  std::unique_ptr<Visit> by_;
  int64_t cycles_;
};

class DspBound final : public BoundCode {
 public:
  DspBound(std::unique_ptr<const BoundCode> by, int64_t cycles) : by_(std::move(by)), cycles_(cycles) {}
  std::vector<Moment> moments() const override { return by_->moments(); }
  int64_t scratch_bytes() const override { return by_->scratch_bytes(); }
  std::unique_ptr<Visit> open(std::span<std::byte> scratch) const override {
    return std::make_unique<DspVisit>(by_->open(scratch), cycles_);
  }

 private:
  std::unique_ptr<const BoundCode> by_;
  int64_t cycles_;
};

class Dsp final : public Executor {
 public:
  explicit Dsp(const Load& load) : subprogram_(load.subprogram), as_cpu_(load.subprogram) {
    as_cpu_.code.kind = "cpu";
    by_ = load_executor({load.program, as_cpu_, load.called});
  }
  std::unique_ptr<const BoundCode> bind(const Sizes& sizes) const override {
    int64_t cycles = 0;
    for (const int32_t id : subprogram_.outputs) cycles += sizes.buffers[static_cast<size_t>(id)].view.elems();
    return std::make_unique<DspBound>(by_->bind(sizes), cycles);
  }

 private:
  const program::Subprogram& subprogram_;
  program::Subprogram as_cpu_;
  std::unique_ptr<const Executor> by_;
};

}  // namespace

std::unique_ptr<const Executor> load_dsp(const Load& load) { return std::make_unique<Dsp>(load); }

}  // namespace hetnn::runtime
