// Runs the idle device's code: what its operators mean, and 7 cycles a visit on its own clock.
#include "hetnn/runtime/executor.h"

namespace hetnn::runtime {
namespace {

class IdleVisit final : public Visit {
 public:
  explicit IdleVisit(std::unique_ptr<Visit> by) : by_(std::move(by)) {}
  void upload(Addresses addresses) override { by_->upload(addresses); }
  void start(const Launch& launch, Event& done) override { by_->start(launch, done); }
  void download(Addresses addresses) override { by_->download(addresses); }
  DeviceTimes times() const override { return {7, 0.07}; }

 private:
  std::unique_ptr<Visit> by_;
};

class IdleBound final : public BoundCode {
 public:
  explicit IdleBound(std::unique_ptr<const BoundCode> by) : by_(std::move(by)) {}
  std::vector<int64_t> scratch_bytes() const override { return by_->scratch_bytes(); }
  std::unique_ptr<Visit> open(std::span<const int64_t> scratch) const override {
    return std::make_unique<IdleVisit>(by_->open(scratch));
  }

 private:
  std::unique_ptr<const BoundCode> by_;
};

class Idle final : public Executor {
 public:
  explicit Idle(const Load& load) : as_cpu_(load.subprogram) {
    as_cpu_.code.kind = "cpu";
    by_ = load_executor({load.program, as_cpu_, load.called});
  }
  std::vector<Moment> moments() const override { return by_->moments(); }
  std::unique_ptr<const BoundCode> bind(const Sizes& sizes) const override {
    return std::make_unique<IdleBound>(by_->bind(sizes));
  }

 private:
  program::Subprogram as_cpu_;
  std::unique_ptr<const Executor> by_;
};

}  // namespace

std::unique_ptr<const Executor> load_idle(const Load& load) { return std::make_unique<Idle>(load); }

}  // namespace hetnn::runtime
