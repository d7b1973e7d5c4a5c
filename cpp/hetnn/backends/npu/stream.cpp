#include "hetnn/backends/npu/stream.h"

#include <limits>
#include <tuple>

#include "hetnn/backends/npu/search.h"
#include "hetnn/npu/timing.h"

namespace hetnn::backends::scheduling {

using npu::Instruction;

template <typename T>
T Streams::known(ByOutline<T>& kept, const Network& network, const std::function<T()>& find) {
  std::vector<int64_t> outline = network.outline();
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = kept.find(outline); at != kept.end()) return at->second;
  }
  T out = find();
  const std::lock_guard lock(mutex_);
  return kept.emplace(std::move(outline), std::move(out)).first->second;
}

Schedule Streams::schedule(const Network& network) {
  return known<Schedule>(schedules_, network, [&] {
    return network.layers().size() == 1 ? best_alone(network) : find_schedule(spec_, network, tiles_);
  });
}

Schedule Streams::schedule_as(const Network& network, const Schedule& packed) {
  return find_schedule(spec_, network, tiles_, &packed);
}

// By the clock, of those that closed forms say are good: of the fastest, within a hundredth, what moves
// least, and of that the shortest.
Schedule Streams::best_alone(const Network& network) {
  constexpr double kAsFast = 1.01;
  std::vector<Schedule> schedules = schedules_alone(spec_, network, tiles_);
  struct Price {
    int64_t cycles, moved_bytes;
    size_t instructions;
    auto rest() const { return std::tie(moved_bytes, instructions); }
  };
  std::vector<Price> prices;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Schedule& schedule : schedules) {
    Packer packer(spec_, nullptr);
    const std::vector<Instruction> instructions = expand(spec_, network, schedule, packer).instructions;
    const npu::Timing timing = new_order(instructions).timing;
    prices.push_back({timing.cycles, timing.dma_bytes, instructions.size()});
    least = std::min(least, timing.cycles);
  }
  size_t best = schedules.size();
  for (size_t k = 0; k < schedules.size(); ++k) {
    if (static_cast<double>(prices[k].cycles) > kAsFast * static_cast<double>(least)) continue;
    if (best == schedules.size() || prices[k].rest() < prices[best].rest()) best = k;
  }
  return std::move(schedules[best]);
}

Streams::Order Streams::new_order(const std::vector<Instruction>& instructions) const {
  Order out;
  out.order = npu::early_transfers(spec_, instructions);
  std::vector<Instruction> early;
  early.reserve(instructions.size());
  for (const size_t k : out.order) early.push_back(instructions[k]);
  out.ordered = npu::ordered(early);
  out.timing = npu::time_stream(spec_, out.ordered.instructions);
  return out;
}

// Where constants lie in their region, which nothing writes, changes no order.
std::shared_ptr<const Streams::Order> Streams::order_of(const std::vector<Instruction>& instructions) {
  std::vector<uint64_t> words;
  for (Instruction instruction : instructions) {
    auto* load = std::get_if<npu::DmaLoad>(&instruction);
    if (load && load->region == static_cast<int64_t>(npu::Region::weights)) load->dram_addr = 0;
    npu::encode(instruction, words);
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = orders_.find(words); known != orders_.end()) return known->second;
  }
  auto out = std::make_shared<const Order>(new_order(instructions));
  // A dynamic model meets new sizes as long as it lives.
  constexpr size_t kMostWords = size_t{1} << 22;
  const std::lock_guard lock(mutex_);
  if (kept_words_ + words.size() > kMostWords) {
    orders_.clear();
    kept_words_ = 0;
  }
  kept_words_ += words.size();
  orders_.emplace(std::move(words), out);
  return out;
}

Stream Streams::stream(const Network& network, const Schedule& schedule, Packer& packer) {
  const Expanded expanded = expand(spec_, network, schedule, packer);
  const std::shared_ptr<const Order> kept = order_of(expanded.instructions);
  const Order& order = *kept;
  Stream out{.instructions = order.ordered.instructions, .layers = {}};
  out.layers.reserve(out.instructions.size());
  for (size_t k = 0; k < order.order.size(); ++k) {
    const size_t from = order.order[k], begin = order.ordered.begins[k],
                 end = k + 1 < order.order.size() ? order.ordered.begins[k + 1] : out.instructions.size();
    out.layers.resize(end, expanded.layers[from]);
    // Behind its waits stands the instruction, with the addresses of this time.
    for (size_t at = begin; at < end; ++at) {
      if (engine_of(out.instructions[at]) != npu::Engine::none) out.instructions[at] = expanded.instructions[from];
    }
  }
  return out;
}

int64_t Streams::cycles(const Network& network) {
  return known<int64_t>(cycles_, network, [&] {
    Packer packer(spec_, nullptr);
    return order_of(expand(spec_, network, find_schedule(spec_, network, tiles_), packer).instructions)->timing.cycles;
  });
}

std::vector<int64_t> Streams::layer_cycles(const Network& network) {
  return known<std::vector<int64_t>>(layer_cycles_, network, [&] {
    Packer packer(spec_, nullptr);
    const Stream made = stream(network, schedule(network), packer);
    std::vector<int64_t> out(network.layers().size());
    npu::Clock clock(spec_);
    for (size_t k = 0; k < made.instructions.size(); ++k) {
      const int64_t begin = clock.now_cycles();
      clock.step(made.instructions[k]);
      out[made.layers[k]] += clock.now_cycles() - begin;
    }
    return out;
  });
}

}  // namespace hetnn::backends::scheduling
