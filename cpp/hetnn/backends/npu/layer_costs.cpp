// Tiles, pieces and copies of one layer that fit, and what they take.
#include "hetnn/backends/npu/layer_costs.h"

#include <algorithm>
#include <cmath>

#include "hetnn/backends/npu/rearrange.h"
#include "hetnn/base/error.h"
#include "hetnn/npu/timing.h"

namespace hetnn::backends::scheduling {

using npu::Content;
using npu::Spec;

double dma_cycles(const Spec& spec, const npu::Memory& memory, double bytes, double transfers, bool store) {
  // Of several transfers on their way only the first one's latency shows.
  const int64_t latency = store ? memory.write_latency_cycles : memory.read_latency_cycles;
  return bytes / memory.rate(store) + (spec.dma.max_outstanding > 1 ? 0 : static_cast<double>(latency) * transfers);
}

int64_t in_bursts(const Spec& spec, int64_t bytes) {
  const int64_t burst = std::max<int64_t>(spec.dram.burst_bytes, 1);
  return (bytes + burst - 1) / burst * burst;
}

double edges_seen(const Network& network) { return network.layers().size() > 1 ? kEdgesSeen : 1; }

const Group& group_with(const Schedule& schedule, size_t layer) {
  const auto at = std::find_if(schedule.groups.begin(), schedule.groups.end(), [&](const Group& group) {
    return group.first <= layer && layer < group.first + group.count;
  });
  HETNN_ASSERT(at != schedule.groups.end(), "every layer is in a group");
  return *at;
}

LayerCosts::LayerCosts(const Spec& spec, const Network& network, const Schedule* packed, BestTiles& tiles)
    : spec_(spec), network_(network), packed_(packed), tiles_(tiles), homes_(network.storages().size()) {}

std::optional<Cost> LayerCosts::find(Group& group, const std::set<size_t>& home, int64_t budget,
                                     int64_t* needed_bytes) {
  for (const size_t storage : home) homes_[storage].in_scratchpad = true;
  const std::optional<Cost> out = find(group, budget, needed_bytes);
  for (const size_t storage : home) homes_[storage].in_scratchpad = false;
  return out;
}

std::optional<Cost> LayerCosts::find(Group& group, int64_t budget, int64_t* needed_bytes) {
  switch (network_.layers()[group.first].form) {
    case Form::view:
      return Cost();
    case Form::product:
    case Form::matrices:
      return product(group, budget, needed_bytes);
    case Form::pool:
    case Form::pair:
    case Form::unary:
    case Form::rows:
      return pieces(group, budget, needed_bytes);
    default:
      return moves(group, budget, needed_bytes);
  }
}

// Of the scratchpad of maps; more than it has where another one is too small.
int64_t LayerCosts::taken(const Group& group) const {
  return spec_.taken(bytes_of(network_, buffers_of(network_, homes_, group)));
}

std::optional<Cost> LayerCosts::product(Group& group, int64_t budget, int64_t* needed_bytes) {
  const Layer& layer = network_.layers()[group.first];
  const ProductShape shape = shape_at_home(network_, homes_, layer);
  // Budgets within a sixteenth are one.
  const int64_t step = std::max<int64_t>(spec_.home(Content::maps).bytes / 16, 1), rounded = budget / step * step;
  // Of two matrices nothing is packed, and their sums, longer than those of the hints, are not to be cut as those.
  Tile kept;
  const bool as_packed = packed_ && layer.form == Form::product;
  if (as_packed) {
    kept = group_with(*packed_, group.first).tile;
    if (group_with(*packed_, group.first).rows > 0)
      kept = {.filters = layer.product.out_c, .channels = layer.product.in_c};
  }
  const Tile* const packed = as_packed ? &kept : nullptr;
  BestTiles::Found found = tiles_.find(shape, rounded > 0 ? rounded : budget, packed);
  // At the least budget, all of it.
  if (!found.tile && rounded != budget) found = tiles_.find(shape, budget, packed);
  const auto& [tile, needed] = found;
  if (needed_bytes) *needed_bytes = needed;
  if (!tile) return std::nullopt;
  group.tile = *tile;
  const int64_t bytes = taken(group);
  if (bytes > budget) return std::nullopt;
  const TileCost cost = cost_of(spec_, shape, *tile);
  Cost out{.mac = cost.engine_cycles, .dma = cost.dma_cycles};
  out.used_bytes = bytes;
  if (tile->overlaps) {
    out.first_loads = edges_seen(network_) * cost.edge_cycles;
    out.first_bytes = bytes / 2;
    out.edges = out.first_loads;
  } else {
    out.edges = std::min(cost.dma_cycles, cost.engine_cycles);
  }
  return out;
}

// Of vector work by itself, pieces of rows, then of columns or channels, that fit.
std::optional<Cost> LayerCosts::pieces(Group& group, int64_t budget, int64_t* needed_bytes) const {
  const Layer& layer = network_.layers()[group.first];
  const bool windowed = layer.form == Form::pool;
  Tile tile{.rows = layer.out.h, .columns = layer.out.w, .filters = layer.out.c, .channels = layer.out.c};
  const auto halve = [](int64_t& value) { value = (value + 1) / 2; };
  for (;;) {
    for (const bool overlaps : {true, false}) {
      tile.overlaps = overlaps;
      group.tile = tile;
      const int64_t bytes = taken(group);
      if (needed_bytes) *needed_bytes = bytes;
      if (bytes > budget) continue;
      Cost out{.vector = static_cast<double>(layer.cycles(spec_, layer.out.h) * layer.out.n)};
      out.used_bytes = bytes;
      const int64_t pixel = tile.channels * layer.elem;
      const bool whole = tile.channels == layer.out.c;
      const auto moved = [&](const ir::Value& value, bool store) {
        if (is_home(network_, homes_, value)) return;
        const Map& map = network_.map(value);
        const auto run = static_cast<double>(whole ? pixel : in_bursts(spec_, pixel));
        const double parts = std::ceil(static_cast<double>(map.c) / static_cast<double>(tile.channels));
        out.dma += dma_cycles(spec_, spec_.dram, run * parts * static_cast<double>(map.n * map.h * map.w),
                              static_cast<double>(layer.out.h) / static_cast<double>(tile.rows), store);
      };
      for (const ir::Value* input : layer.inputs) moved(*input, false);
      moved(*layer.output, true);
      const double steps = std::ceil(static_cast<double>(layer.out.h) / static_cast<double>(tile.rows)) *
                           std::ceil(static_cast<double>(layer.out.c) / static_cast<double>(tile.channels)) *
                           static_cast<double>(layer.out.n);
      out.edges = overlaps ? out.dma / steps : std::min(out.dma, out.vector);
      return out;
    }
    if (tile.rows > 1)
      halve(tile.rows);
    else if (windowed && tile.channels > 1)
      halve(tile.channels);
    else if (!windowed && tile.columns > 1)
      halve(tile.columns);
    else
      return std::nullopt;
  }
}

std::optional<Cost> LayerCosts::moves(Group& group, int64_t budget, int64_t* needed_bytes) const {
  const Layer& layer = network_.layers()[group.first];
  const auto at_home = [&](const ir::Value& value) { return is_home(network_, homes_, value); };
  Cost out;
  const Slabs slabs = layer.form == Form::rearrange ? slabs_of(layer, network_.bindings()) : Slabs();
  if (layer.form == Form::rearrange) {
    group.tile.rows = slabs.count;
  } else {
    // Here rows are bytes: as many runs as fit, at best all of the longest copy.
    group.tile.rows = 0;
    for (const Copy& copy : copies_of(layer, network_)) {
      group.tile.rows = std::max(group.tile.rows, copy.runs * copy.run_bytes);
      const double bytes = static_cast<double>(copy.runs * copy.run_bytes);
      if (!at_home(*copy.from)) out.dma += dma_cycles(spec_, spec_.dram, bytes, 1, false);
      if (!at_home(*layer.output)) out.dma += dma_cycles(spec_, spec_.dram, bytes, 1, true);
      if (at_home(*copy.from) && at_home(*layer.output))
        out.vector += static_cast<double>(npu::vector_cycles(spec_, bytes / static_cast<double>(layer.elem), 1));
    }
  }
  int64_t least = 1;
  if (layer.form != Form::rearrange) {
    for (const Copy& copy : copies_of(layer, network_)) least = std::max(least, copy.run_bytes);
  } else {
    const auto steps = static_cast<double>(moves_of(layer, network_.bindings()).size());
    out.vector += steps * static_cast<double>(layer.cycles(spec_, layer.out.h * layer.out.n));
  }
  // What moves, of so many elements of the axis at once, with all bursts.
  const auto moved = [&](const Slab& slab, bool store) {
    const double pieces = std::ceil(static_cast<double>(slabs.count) / static_cast<double>(group.tile.rows));
    const auto bytes = static_cast<double>(slab.runs * in_bursts(spec_, slab.run_bytes * group.tile.rows));
    return dma_cycles(spec_, spec_.dram, bytes * pieces, pieces, store);
  };
  for (;; group.tile.rows = std::max((group.tile.rows + 1) / 2, least)) {
    for (const bool overlaps : {true, false}) {
      group.tile.overlaps = overlaps;
      const int64_t bytes = taken(group);
      if (needed_bytes) *needed_bytes = bytes;
      if (bytes > budget) continue;
      if (layer.form == Form::rearrange) {
        if (!at_home(*layer.inputs[0])) out.dma += moved(slabs.in, false);
        if (!at_home(*layer.output)) out.dma += moved(slabs.out, true);
        out.edges = std::min(out.dma, out.vector);
      }
      return out;
    }
    if (group.tile.rows <= least) return std::nullopt;
  }
}

}  // namespace hetnn::backends::scheduling
