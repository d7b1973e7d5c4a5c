// Cascades, and the way through the boundaries between groups.
#include "hetnn/backends/npu/search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "hetnn/backends/backend.h"
#include "hetnn/backends/npu/layer_costs.h"
#include "hetnn/base/error.h"
#include "hetnn/base/progress.h"
#include "hetnn/npu/timing.h"

namespace hetnn::backends::scheduling {
namespace {

using npu::Content;
using npu::Engine;
using npu::Spec;

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr size_t kMostCascade = 40;  // layers
constexpr size_t kMostStates = 8;    // that go on at one boundary
constexpr int kMostInVain = 1;       // longer cascades that lead nowhere sooner than what is known
constexpr int64_t kSteps_tried = 5;  // of a cascade, before it is steady

// What the group before leaves of the memory's time and of the scratchpad's room.
struct Spare {
  double dma = 0;
  int64_t bytes = 0;

  // How much of a group's first loads that hides.
  double hides(const Cost& cost) const {
    if (cost.first_loads <= 0) return 0;
    const double room =
        cost.first_bytes > bytes ? static_cast<double>(bytes) / static_cast<double>(cost.first_bytes) : 1;
    // Some is in the way of other transfers.
    constexpr double kMost = 0.8;
    return std::min(dma, kMost * cost.first_loads * std::max(room, 0.0));
  }
  static Spare behind(const Cost& cost, int64_t budget) {
    return {std::max(cost.cycles() - cost.dma, 0.0), budget - cost.used_bytes};
  }
};

// A cascade as if no storage were at home: the rings that it needs, and what its loads and stores would take.
struct Shape {
  double mac = 0, vector = 0;
  double steps = 1;
  bool accumulates = true;      // each step's sums have room
  npu::ContentBytes kept = {};  // parameters
  double kept_dma = 0;
  struct Ring {
    size_t storage;
    int64_t bytes;
  };
  std::vector<Ring> rings;
  struct Transfer {
    size_t storage;
    double dma;
  };
  std::vector<Transfer> transfers;
};

class Search {
 public:
  Search(const Spec& spec, const Network& network, int64_t capacity_bytes, const Schedule* packed, BestTiles& tiles)
      : spec_(spec),
        network_(network),
        capacity_(capacity_bytes),
        packed_(packed),
        budgets_(network.layers().size(), capacity_bytes),
        begun_(network.layers().size()),
        nowhere_(network.storages().size()),
        costs_(spec, network, packed, tiles) {
    for (size_t k = 0; k < network.storages().size(); ++k) {
      const Storage& storage = network.storages()[k];
      if (!storage.is_port && !storage.is_constant && storage.bytes > 0) begun_[storage.first].push_back(k);
    }
  }

  // What fits group by group may not fit side by side: less is planned for such layers.
  void leave_room(const std::vector<size_t>& layers) {
    for (const size_t layer : layers) budgets_[layer] = budgets_[layer] * 7 / 8;
  }

  // The groups and homes; none where some layer does not fit.
  std::optional<Schedule> run(bool resident) {
    const size_t count = network_.layers().size();
    boundaries_.assign(count + 1, {});
    boundaries_[0].push_back({});
    for (size_t first = 0; first < count; ++first) {
      announce_parts(first, count);
      keep_best(boundaries_[first]);
      for (size_t state = 0; state < boundaries_[first].size(); ++state) go_on(first, state, resident);
    }
    keep_best(boundaries_[count]);
    if (boundaries_[count].empty()) return std::nullopt;
    return schedule_of(0);
  }

  // The bytes of the smallest tile of a layer that does not fit even by itself.
  std::optional<int64_t> missing_bytes(size_t at) {
    Group group{.first = at};
    int64_t needed = 0;
    if (costs_.find(group, {}, capacity_, &needed)) return std::nullopt;
    if (cascade(at, 1, {}, capacity_)) return std::nullopt;
    return needed;
  }

 private:
  struct State {
    std::set<size_t> home;  // storages in the scratchpad that are still read
    double cycles = 0;
    Spare spare;
    Group group;  // that led here, from the state of that number at its first layer's boundary
    size_t from = 0;
    std::vector<size_t> chosen;  // storages that the group brought home
  };
  struct Choice {
    Group group;
    Cost cost;
  };

  void go_on(size_t first, size_t from, bool resident) {
    int in_vain = 0;
    const Spare spare = boundaries_[first][from].spare;
    for (size_t count = 1; first + count <= network_.layers().size(); ++count) {
      if (count > 1 && (!resident || count > kMostCascade || !joins(first, count))) break;
      const size_t end = first + count;
      std::vector<size_t> fresh;
      for (size_t layer = first; resident && layer < end; ++layer) {
        for (const size_t k : begun_[layer]) {
          const Storage& storage = network_.storages()[k];
          if (storage.last >= end && storage.bytes <= capacity_ * 3 / 4 && may_stay(spec_, network_, k))
            fresh.push_back(k);
        }
      }
      if (fresh.size() > 3) fresh.resize(3);
      bool any = false;
      double known = kNever, soonest = kNever;
      for (const State& state : boundaries_[end]) known = std::min(known, state.cycles);
      for (uint32_t bits = 0; bits < (1U << fresh.size()); ++bits) {
        State next;
        next.from = from;
        next.home = boundaries_[first][from].home;
        for (size_t k = 0; k < fresh.size(); ++k) {
          if ((bits >> k & 1) != 0) next.chosen.push_back(fresh[k]);
        }
        next.home.insert(next.chosen.begin(), next.chosen.end());
        int64_t budget = capacity_;
        for (size_t k = first; k < end; ++k) budget = std::min(budget, budgets_[k]);
        for (const size_t storage : next.home) budget -= aligned(network_.storages()[storage].bytes);
        if (budget < 0) continue;
        std::optional<Choice> choice = cascade(first, count, next.home, budget);
        if (count == 1) {
          Group group{.first = first};
          const std::optional<Cost> cost = costs_.find(group, next.home, budget, nullptr);
          if (cost &&
              (!choice || cost->cycles() - spare.hides(*cost) < choice->cost.cycles() - spare.hides(choice->cost)))
            choice = Choice{group, *cost};
        }
        if (!choice) continue;
        any = true;
        next.group = choice->group;
        next.cycles = boundaries_[first][from].cycles + choice->cost.cycles() - spare.hides(choice->cost);
        next.spare = Spare::behind(choice->cost, budget);
        std::erase_if(next.home, [&](size_t storage) { return network_.storages()[storage].last < end; });
        soonest = std::min(soonest, next.cycles);
        boundaries_[end].push_back(std::move(next));
      }
      in_vain = soonest < known ? 0 : in_vain + 1;
      if (count > 1 && (!any || in_vain > kMostInVain)) break;
    }
  }

  static void keep_best(std::vector<State>& states) {
    std::stable_sort(states.begin(), states.end(), [](const State& a, const State& b) { return a.cycles < b.cycles; });
    std::vector<State> out;
    for (State& state : states) {
      const bool known =
          std::any_of(out.begin(), out.end(), [&](const State& better) { return better.home == state.home; });
      if (!known && out.size() < kMostStates) out.push_back(std::move(state));
    }
    states = std::move(out);
  }

  Schedule schedule_of(size_t state) const {
    Schedule out;
    out.homes.resize(network_.storages().size());
    for (size_t at = network_.layers().size(); at > 0;) {
      const State& s = boundaries_[at][state];
      for (const size_t storage : s.chosen) out.homes[storage].in_scratchpad = true;
      out.groups.push_back(s.group);
      state = s.from;
      at = s.group.first;
    }
    std::reverse(out.groups.begin(), out.groups.end());
    return out;
  }

  // Whether layers can be one cascade; of its first layers that was asked before.
  bool joins(size_t first, size_t count) const {
    const Group group{.first = first, .count = count, .rows = 1};
    return network_.layers()[first].streams && why_no_group(network_, group).empty();
  }

  const Shape* shape(size_t first, size_t count, int64_t rows, int64_t ahead) {
    const auto key = std::tuple(first, count, rows, ahead);
    if (const auto at = shapes_.find(key); at != shapes_.end()) return &at->second;
    Shape out;
    const Group group{.first = first, .count = count, .rows = rows, .ahead = ahead};
    const Stripes stripes = stripes_of(network_, nowhere_, group, kSteps_tried);
    for (const auto& [frame, ring_rows] : stripes.ring_rows) {
      const Frame& f = network_.frames()[frame];
      out.rings.push_back({f.storage, aligned(std::min(ring_rows, f.map.h) * f.map.w * f.pixel_bytes)});
    }
    // Rows of a steady step: the last that a layer or a load takes of those tried, but for the very last.
    std::vector<std::vector<int64_t>> steps(count);
    struct Moved {
      const ir::Value* value;
      bool store;
      int64_t rows = 0, bytes = 0;  // of the steps tried, with all of their bursts
    };
    std::vector<Moved> moved;
    for (const Event& event : stripes.events) {
      if (event.kind == Event::Kind::compute) {
        steps[event.layer - first].push_back(event.count);
        continue;
      }
      const bool store = event.kind == Event::Kind::store;
      auto at = std::find_if(moved.begin(), moved.end(),
                             [&](const Moved& m) { return m.value == event.value && m.store == store; });
      if (at == moved.end()) at = moved.insert(at, {event.value, store});
      const Map& map = network_.map(*event.value);
      const int64_t pixel = map.c * dtype_bytes(event.value->dtype()), pixels = event.count * map.w;
      const bool dense = pixel == network_.frame(*event.value).pixel_bytes;
      at->rows += event.count;
      at->bytes += dense ? in_bursts(spec_, pixels * pixel) : pixels * in_bursts(spec_, pixel);
    }
    const Layer& last = network_.layers()[first + count - 1];
    const int64_t count_of_steps = (last.out.h + rows - 1) / rows * last.out.n;
    out.steps = static_cast<double>(count_of_steps);
    for (size_t k = first; k < first + count; ++k) {
      const Layer& layer = network_.layers()[k];
      const int64_t kept = layer.parameters().bytes;
      out.kept[static_cast<size_t>(layer.engine() == Engine::mac ? Content::weights : Content::maps)] += kept;
      out.kept_dma += dma_cycles(spec_, spec_.constants(), static_cast<double>(kept), kept > 0 ? 1 : 0, false);
      const std::vector<int64_t>& counts = steps[k - first];
      if (layer.form == Form::view || counts.empty()) continue;
      const int64_t steady = counts[counts.size() > 2 ? counts.size() - 2 : 0], whole = layer.out.h / steady;
      const double cycles =
          static_cast<double>(layer.cycles(spec_, steady)) * static_cast<double>(whole) +
          static_cast<double>(layer.out.h % steady > 0 ? layer.cycles(spec_, layer.out.h % steady) : 0);
      (layer.engine() == Engine::mac ? out.mac : out.vector) += cycles * static_cast<double>(layer.out.n);
      const int64_t most = *std::max_element(counts.begin(), counts.end());
      if (layer.form == Form::product) out.accumulates &= accumulates(spec_, most * layer.out.w * layer.out.c);
    }
    for (const Moved& m : moved) {
      const Map& map = network_.map(*m.value);
      const double bytes =
          static_cast<double>(m.bytes) / static_cast<double>(m.rows) * static_cast<double>(map.n * map.h);
      const Storage& storage = network_.storage(*m.value);
      const npu::Memory& memory = storage.is_constant ? spec_.constants() : spec_.dram;
      out.transfers.push_back({network_.frame(*m.value).storage, dma_cycles(spec_, memory, bytes, out.steps, m.store)});
    }
    return &shapes_.emplace(key, std::move(out)).first->second;
  }

  std::optional<Choice> cascade(size_t first, size_t count, const std::set<size_t>& home, int64_t budget) {
    if (!joins(first, count)) return std::nullopt;
    for (size_t k = first; packed_ && k < first + count; ++k) {
      if (!packs_whole(k)) return std::nullopt;
    }
    const Layer& last = network_.layers()[first + count - 1];
    std::optional<Choice> best;
    const auto consider = [&](int64_t rows, int64_t ahead) {
      const Shape& s = *shape(first, count, rows, ahead);
      if (!s.accumulates) return false;
      npu::ContentBytes needed = s.kept;
      int64_t& maps = needed[static_cast<size_t>(Content::maps)];
      for (const Shape::Ring& ring : s.rings) maps += home.contains(ring.storage) ? 0 : ring.bytes;
      const int64_t bytes = spec_.taken(needed);
      if (bytes > budget) return false;
      double moved = 0;
      for (const Shape::Transfer& transfer : s.transfers) moved += home.contains(transfer.storage) ? 0 : transfer.dma;
      Cost cost{.mac = s.mac, .vector = s.vector, .dma = moved + s.kept_dma};
      // The first load and the last store are seen, and one engine's work where another waits for it.
      cost.edges = edges_seen(network_) * moved / s.steps + std::min(s.mac, s.vector) / s.steps;
      // What is kept is there before the first step.
      cost.first_loads = s.kept_dma;
      cost.first_bytes = spec_.taken(s.kept);
      cost.used_bytes = bytes;
      cost.edges += cost.first_loads;
      if (ahead == 0) cost.edges += moved;
      const bool better = !best || cost.cycles() < best->cost.cycles();
      if (better) best = Choice{{.first = first, .count = count, .rows = rows, .ahead = ahead}, cost};
      return true;
    };
    int fits = 0, worse = 0;
    double least = kNever;
    int64_t& start = start_rows_[first];
    if (count == 1 || start == 0) start = last.out.h;
    int64_t rows = std::min(start, last.out.h);
    for (;; rows = unit_rows((rows + 1) / 2)) {
      if (consider(rows, 1)) {
        if (fits == 0) start = rows;
        ++fits;
        worse = best->cost.cycles() < least ? 0 : worse + 1;
        least = best->cost.cycles();
      }
      if (worse == 2 || rows == 1) break;
    }
    if (fits == 0) consider(1, 0);
    return best;
  }
  // Rows as the engine computes them at once.
  int64_t unit_rows(int64_t rows) const {
    const int64_t unit = spec_.mac.kind == npu::MacKind::dot_block ? spec_.mac.block_height : 1;
    return rows > unit ? (rows + unit - 1) / unit * unit : rows;
  }
  bool packs_whole(size_t at) const {
    const Layer& layer = network_.layers()[at];
    if (layer.form != Form::product) return true;
    const Group& group = group_with(*packed_, at);
    return group.rows > 0 || (group.tile.filters == layer.product.out_c && group.tile.channels == layer.product.in_c);
  }
  const Spec& spec_;
  const Network& network_;
  const int64_t capacity_;
  const Schedule* const packed_;
  std::vector<int64_t> budgets_;            // of each layer
  std::vector<std::vector<size_t>> begun_;  // storages that may stay, by the layer that writes them first
  const std::vector<Home> nowhere_;         // no storage is at home in the scratchpad
  std::vector<std::vector<State>> boundaries_;
  std::map<std::tuple<size_t, size_t, int64_t, int64_t>, Shape> shapes_;
  LayerCosts costs_;
  std::map<size_t, int64_t> start_rows_;
};

std::string scratchpads(const Spec& spec) {
  if (spec.sram.size() == 1) return text(spec.sram.front().bytes);
  std::string out;
  for (const npu::Memory& memory : spec.sram)
    out += text(out.empty() ? "" : ", ", memory.bytes, " of '", memory.name, "'");
  return out;
}

[[noreturn]] void does_not_fit(const Spec& spec, const ir::Node& node, int64_t needed_bytes) {
  const std::string where = ops::to_string(node.loc());
  if (needed_bytes == std::numeric_limits<int64_t>::max())
    throw NodeDoesNotFit(
        text(ir::describe(node), ": the sums of its smallest tile exceed the accumulators of ", spec.name, ", ",
             spec.mac.accumulator_bytes, " bytes. Pin the node to the cpu.", where.empty() ? "" : "\n  at " + where),
        std::string(node.name()));
  throw NodeDoesNotFit(
      text(ir::describe(node), ": its smallest tile takes ", needed_bytes, " bytes of scratchpad; ", spec.name, " has ",
           scratchpads(spec), ". Use a target with more scratchpad, or pin the node to the cpu.",
           where.empty() ? "" : "\n  at " + where),
      std::string(node.name()));
}

void give_buffers(const Network& network, Schedule& schedule) {
  for (Group& group : schedule.groups) group.buffers = buffers_of(network, schedule.homes, group);
}

}  // namespace

Schedule find_schedule(const Spec& spec, const Network& network, BestTiles& tiles, const Schedule* packed) {
  const int64_t capacity = spec.home(Content::maps).bytes;
  Search search(spec, network, capacity, packed, tiles);
  constexpr int kMostRounds = 12;
  for (int round = 0; round < kMostRounds && network.layers().size() <= kMostLayersSearched; ++round) {
    std::optional<Schedule> out = search.run(true);
    if (!out) break;
    give_buffers(network, *out);
    const std::vector<size_t> crowded = place(spec, network, *out);
    if (crowded.empty()) return *out;
    search.leave_room(crowded);
  }
  Search alone(spec, network, capacity, packed, tiles);
  if (std::optional<Schedule> out = alone.run(false)) {
    give_buffers(network, *out);
    if (place(spec, network, *out).empty()) return *out;
  }
  if (packed) return find_schedule(spec, network, tiles);
  for (size_t k = 0; k < network.layers().size(); ++k) {
    if (const std::optional<int64_t> bytes = alone.missing_bytes(k))
      does_not_fit(spec, network.layers()[k].node(), *bytes);
  }
  HETNN_ASSERT(false, "every layer fits by itself, and none beside nothing");
  return {};
}

std::vector<Schedule> schedules_alone(const Spec& spec, const Network& network, BestTiles& tiles) {
  std::vector<Schedule> out;
  const Layer& layer = network.layers().front();
  const auto add = [&](const Group& group) {
    Schedule schedule;
    schedule.homes.resize(network.storages().size());
    schedule.groups.push_back(group);
    give_buffers(network, schedule);
    if (place(spec, network, schedule).empty()) out.push_back(std::move(schedule));
  };
  out.push_back(find_schedule(spec, network, tiles));
  constexpr size_t kMostTiles = 64;
  if (layer.form == Form::product || layer.form == Form::matrices) {
    const ProductShape shape = shape_at_home(network, out.front().homes, layer);
    for (const Tile& tile : good_tiles(spec, shape, spec.home(Content::maps).bytes, kMostTiles)) add({.tile = tile});
  }
  if (layer.streams && why_no_group(network, {.count = 1, .rows = 1}).empty()) {
    for (int64_t rows = layer.out.h;; rows = (rows + 1) / 2) {
      if (layer.form != Form::product || accumulates(spec, rows * layer.out.w * layer.out.c)) add({.rows = rows});
      if (rows == 1) break;
    }
  }
  return out;
}

}  // namespace hetnn::backends::scheduling
