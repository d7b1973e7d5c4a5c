// A visit of the general processor: the commands of each block one after another, in one parallel region.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <span>
#include <vector>

#include "hetnn/base/parallel.h"
#include "hetnn/runtime/cpu/bound.h"

namespace hetnn::runtime {

class CpuVisit final : public Visit {
 public:
  CpuVisit(const CpuBound& bound, std::span<const int64_t> scratch);
  void upload(Addresses addresses) override;
  void start(const Launch& launch, Event& done) override;
  void download(Addresses) override {}

 private:
  // A command of a block, and where its values lie. Kernels take what is there, meanings every input.
  struct Step {
    const BoundCommand* command;
    size_t number;  // of the command
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::vector<ops::View> views;
  };
  template <typename Body>
  void guarded(const Body& body);
  bool lies_there(size_t index) const;
  void run_alone(size_t index, const Launch& launch);
  void tell_refused(size_t index);
  // Steps [from, to) of a visit that began at `begin`.
  struct Stretch {
    size_t from, to;
    std::chrono::steady_clock::time_point begin;
  };
  void run_share(int thread, SpinBarrier& barrier, const Stretch& stretch, const Launch& launch);

  void join_blocks(std::vector<CommandTime>& times);

  const CpuBound& bound_;
  const std::span<const int64_t> scratch_;  // in the arena, of every command
  std::vector<Step> steps_;                 // all commands of the first block, then of the next
  // Which of their pointers are whose.
  template <typename Pointer>
  struct Place {
    int32_t buffer;
    int64_t offset_bytes;
    Pointer* at;
  };
  std::vector<Place<const std::byte*>> read_;
  std::vector<Place<std::byte*>> written_;
  std::vector<double> thread_us_;  // of a visit whose commands are timed: [step][thread]
  FoundSizes* found_ = nullptr;    // of the visit under way
  std::exception_ptr failure_;     // of a meaning or a check
  std::atomic<bool> refused_;      // by a kernel of the visit under way
  std::atomic<int> last_barrier_;  // that the threads meet at, once the visit is to stop
};

}  // namespace hetnn::runtime
