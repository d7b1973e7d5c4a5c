// What a layer by itself takes of an NPU's engines, by closed forms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "hetnn/backends/npu/schedule.h"
#include "hetnn/backends/npu/tile.h"
#include "hetnn/npu/spec.h"

namespace hetnn::backends::scheduling {

/// What a group takes of each engine, and what stays open at its ends.
struct Cost {
  static constexpr double kTie = 0.1;  // of all engines' work: none hides the others' entirely
  double mac = 0, vector = 0, dma = 0, edges = 0;
  double first_loads = 0;                   // of the edges: what must be there before anything is computed,
  int64_t first_bytes = 0, used_bytes = 0;  // and could be loaded before; all that the group has in the scratchpad
  double cycles() const {
    const double most = std::max({mac, vector, dma});
    return most + edges + kTie * (mac + vector + dma - most);
  }
};

/// Of so many bytes in so many transfers.
double dma_cycles(const npu::Spec& spec, const npu::Memory& memory, double bytes, double transfers, bool store);
/// With what a burst moves beyond its bytes.
int64_t in_bursts(const npu::Spec& spec, int64_t bytes);
/// The share of a group's edges that no neighbour hides.
double edges_seen(const Network& network);
/// Of a schedule, the group with that layer.
const Group& group_with(const Schedule& schedule, size_t layer);

class LayerCosts {
 public:
  /// `packed`: as find_schedule takes it, or null.
  LayerCosts(const npu::Spec& spec, const Network& network, const Schedule* packed, BestTiles& tiles);

  /// The cost of the best tile of `group`, a group of one layer, which is set; none where no tile fits into `budget`
  /// bytes beside the storages that are at home. `needed_bytes`, where given, becomes what the last tile tried takes.
  std::optional<Cost> find(Group& group, const std::set<size_t>& home, int64_t budget, int64_t* needed_bytes);

 private:
  std::optional<Cost> find(Group& group, int64_t budget, int64_t* needed_bytes);
  std::optional<Cost> product(Group& group, int64_t budget, int64_t* needed_bytes);
  std::optional<Cost> pieces(Group& group, int64_t budget, int64_t* needed_bytes) const;
  std::optional<Cost> moves(Group& group, int64_t budget, int64_t* needed_bytes) const;
  int64_t taken(const Group& group) const;

  const npu::Spec& spec_;
  const Network& network_;
  const Schedule* const packed_;
  BestTiles& tiles_;
  std::vector<Home> homes_;  // of the layer that is asked about
};

}  // namespace hetnn::backends::scheduling
