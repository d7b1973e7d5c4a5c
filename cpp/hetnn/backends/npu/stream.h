// The command stream of a network: scheduled, expanded, ordered.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hetnn/backends/npu/expand.h"
#include "hetnn/backends/npu/schedule.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/order.h"
#include "hetnn/npu/timing.h"

namespace hetnn::backends::scheduling {

/// Instructions with tokens, and whose each is.
struct Stream {
  std::vector<npu::Instruction> instructions;
  std::vector<size_t> layers;
};

/// Makes streams for one machine. What was found is kept: planning asks for the same layers again and again. Callable
/// from several threads.
class Streams {
 public:
  /// `spec` outlives it.
  explicit Streams(const npu::Spec& spec) : spec_(spec) {}

  /// As find_schedule; of one layer by itself the best by the clock.
  Schedule schedule(const Network& network);
  /// Of the network at other sizes than those of `packed`, with its packed weights.
  Schedule schedule_as(const Network& network, const Schedule& packed);
  /// Throws as expand does.
  Stream stream(const Network& network, const Schedule& schedule, Packer& packer);
  /// Cycles of one layer by itself as find_schedule has it, by its stream's clock. Throws as find_schedule and expand
  /// do.
  int64_t cycles(const Network& network);
  /// Cycles of each layer of a network as schedule() has it. Throws likewise.
  std::vector<int64_t> layer_cycles(const Network& network);

 private:
  // An order of instructions, and the same with tokens.
  struct Order {
    std::vector<size_t> order;
    npu::Ordered ordered;
    npu::Timing timing;
  };
  template <typename T>
  using ByOutline = std::map<std::vector<int64_t>, T>;
  template <typename T>
  T known(ByOutline<T>& kept, const Network& network, const std::function<T()>& find);
  Schedule best_alone(const Network& network);
  Order new_order(const std::vector<npu::Instruction>& instructions) const;
  std::shared_ptr<const Order> order_of(const std::vector<npu::Instruction>& instructions);

  const npu::Spec& spec_;
  BestTiles tiles_{spec_};
  std::mutex mutex_;
  ByOutline<Schedule> schedules_;
  ByOutline<int64_t> cycles_;
  ByOutline<std::vector<int64_t>> layer_cycles_;
  std::map<std::vector<uint64_t>, std::shared_ptr<const Order>> orders_;  // by the words of instructions
  size_t kept_words_ = 0;                                                 // in all of their keys
};

}  // namespace hetnn::backends::scheduling
