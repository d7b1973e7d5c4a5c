// Candidates for tiles by halving each axis, priced by closed forms of what their steps load, compute and store.
#include "hetnn/backends/npu/tile.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include "hetnn/base/requantize.h"
#include "hetnn/npu/timing.h"

namespace hetnn::backends::scheduling {
namespace {

int64_t pieces(int64_t whole, int64_t piece) { return (whole + piece - 1) / piece; }
int64_t rounded_up(int64_t value, int64_t unit) { return pieces(value, unit) * unit; }

// The whole and its halves, quarters ..., in units of what the engine computes at once.
std::vector<int64_t> fractions(int64_t whole, int64_t unit) {
  std::vector<int64_t> out = {whole};
  for (int64_t parts = 2; out.back() > 1; parts *= 2) {
    int64_t next = pieces(whole, parts);
    if (next > unit) next = std::min(rounded_up(next, unit), whole);
    if (next < out.back()) out.push_back(next);
    if (next == 1) break;
  }
  return out;
}

// Many sizes of pieces: equal ones, and those of whole units.
std::vector<int64_t> many_fractions(int64_t whole, int64_t unit) {
  constexpr int64_t kMostUnits = 16;
  std::set<int64_t, std::greater<>> out;
  for (int64_t parts = 1; parts <= whole; parts += std::max<int64_t>(parts / 4, 1)) {
    const int64_t piece = pieces(whole, parts);
    out.insert({piece, std::min(rounded_up(piece, unit), whole)});
  }
  for (int64_t units = 1; units <= std::min(whole / unit, kMostUnits); ++units) out.insert(units * unit);
  return {out.begin(), out.end()};
}

struct Units {
  int64_t rows = 1, columns = 1, filters = 1, channels = 1;
};
Units units_of(const npu::Mac& mac, const ProductShape& shape) {
  if (mac.kind == npu::MacKind::systolic) return {1, 1, mac.cols, mac.rows};
  const int64_t block = mac.block_height * mac.block_width * mac.block_channels;
  const int64_t pixels = shape.is_rows || shape.whole_sums ? mac.block_height * mac.block_width : 0;
  return {pixels ? pixels : mac.block_height, mac.block_width, mac.block_channels,
          std::max<int64_t>(mac.macs_per_cycle / block, 1)};
}

int64_t filters_of_group(const ProductShape& s) { return s.out_c / s.groups; }
int64_t channels_of_group(const ProductShape& s) { return s.in_c / s.groups; }
// The input channels that a tile reads at once.
int64_t channels_read(const ProductShape& s, const Tile& t) {
  return s.groups == 1 ? t.channels : t.filters / filters_of_group(s) * channels_of_group(s);
}

// Of a step, so that of tiles that are about as fast the larger are taken: instructions are fetched and ordered too.
constexpr double kStepCycles = 32;

double transfer(const npu::Memory& memory, int64_t run_bytes, int64_t runs, bool store) {
  return static_cast<double>(npu::dma_cycles(memory, run_bytes, runs, store));
}

// Runs of a box of a feature map that lies in memory with all its columns and channels.
double box_cycles(const npu::Spec& spec, int64_t rows, int64_t columns, int64_t channels, int64_t all_columns,
                  int64_t all_channels, int64_t elem, bool store) {
  if (channels < all_channels) return transfer(spec.dram, channels * elem, rows * columns, store);
  if (columns < all_columns) return transfer(spec.dram, columns * channels * elem, rows, store);
  return transfer(spec.dram, rows * columns * channels * elem, 1, store);
}

class Search {
 public:
  Search(const npu::Spec& spec, const ProductShape& shape, int64_t budget_bytes, bool alone = false)
      : spec_(spec),
        shape_(shape),
        budget_bytes_(budget_bytes),
        alone_(alone),
        finely_(alone),
        elem_(dtype_bytes(shape.dtype)),
        units_(units_of(spec.mac, shape)) {}

  std::optional<Tile> run_as(const Tile& packed, int64_t& needed_bytes) {
    try_places(packed.filters, packed.channels);
    needed_bytes = least_bytes_;
    return best_;
  }

  std::vector<Tile> run(size_t count) {
    constexpr size_t kMostTried = size_t{1} << 15;
    finely_ = cuts(shape_.out_h, units_.rows).size() * cuts(shape_.out_w, units_.columns).size() *
                  cuts(shape_.out_c, units_.filters).size() * cuts(shape_.in_c, units_.channels).size() <=
              kMostTried;
    int64_t needed_bytes = 0;
    run(needed_bytes);
    std::stable_sort(tried_.begin(), tried_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Tile> out;
    for (size_t k = 0; k < std::min(count, tried_.size()); ++k) out.push_back(tried_[k].second);
    return out;
  }

  std::optional<Tile> run(int64_t& needed_bytes) {
    const std::vector<int64_t> channels =
        shape_.groups == 1 && !shape_.whole_sums ? cuts(shape_.in_c, units_.channels) : std::vector{shape_.in_c};
    for (const bool split : {false, true}) {
      for (const int64_t part : channels) {
        if ((part < shape_.in_c) != split) continue;
        try_filters(part);
        if (best_ && !is_integer()) break;
      }
      // Sums of integers are the same in any order.
      if (best_ && !is_integer()) break;
    }
    needed_bytes = least_bytes_;
    return best_;
  }

 private:
  std::vector<int64_t> cuts(int64_t whole, int64_t unit) const {
    return finely_ ? many_fractions(whole, unit) : fractions(whole, unit);
  }
  bool is_integer() const { return shape_.dtype == DType::i8; }

  void try_filters(int64_t channels) {
    const int64_t group = filters_of_group(shape_);
    const std::vector<int64_t> blocks =
        shape_.groups == 1 ? cuts(shape_.out_c, units_.filters) : cuts(shape_.groups, units_.filters);
    for (const int64_t block : blocks) try_places(shape_.groups == 1 ? block : block * group, channels);
  }

  void try_places(int64_t filters, int64_t channels) {
    for (const int64_t columns : cuts(shape_.out_w, units_.columns)) {
      bool fits = false;
      for (const int64_t rows : cuts(shape_.out_h, units_.rows))
        fits |= consider({.rows = rows, .columns = columns, .filters = filters, .channels = channels});
      // Narrower pieces load more twice, and are of use only where no row of a wider one fits beside the next, or where
      // windows leave columns out.
      if (fits && !alone_ && shape_.window[1].stride <= shape_.window[1].reach()) break;
    }
  }

  // Whether it fits beside the next one.
  bool consider(Tile tile) {
    bool fits = false;
    if (!accumulates(spec_, tile.rows * tile.columns * tile.filters)) return false;
    for (const bool overlaps : {true, false}) {
      tile.overlaps = overlaps;
      const TileBuffers buffers = buffers_of(shape_, tile);
      const npu::ContentBytes bytes = buffers.contents();
      least_bytes_ = std::min(least_bytes_, std::accumulate(bytes.begin(), bytes.end(), int64_t{0}));
      if (spec_.taken(bytes) > budget_bytes_) continue;
      fits = overlaps;
      for (const bool inside : {false, true}) {
        tile.filters_inside = inside;
        const double cycles = cycles_of(tile);
        if (alone_) tried_.emplace_back(cycles, tile);
        if (cycles < least_cycles_) {
          least_cycles_ = cycles;
          best_ = tile;
        }
      }
      break;  // what overlaps is not slower
    }
    return fits;
  }

  double cycles_of(const Tile& t) const {
    const TileCost cost = this->cost(t);
    // Alone, the engine waits for the first loads and the last store for the engine.
    if (alone_)
      return std::max(cost.first_cycles + cost.engine_cycles + cost.last_cycles,
                      cost.dma_cycles - cost.hidden_cycles + cost.engine_cycles / cost.steps);
    const double steps = kStepCycles * cost.steps;
    if (!t.overlaps) return cost.dma_cycles + cost.engine_cycles + steps;
    // Other layers hide some of the edges; of what is as fast, what moves less.
    return std::max(cost.dma_cycles, cost.engine_cycles) + kEdgesSeen * cost.edge_cycles + 0.01 * cost.dma_cycles +
           steps;
  }

 public:
  TileCost cost(const Tile& t) const {
    const ops::Window& w = shape_.window;
    const int64_t taps = ops::taps_of(w);
    const int64_t rows = pieces(shape_.out_h, t.rows), columns = pieces(shape_.out_w, t.columns),
                  blocks = pieces(shape_.out_c, t.filters),
                  parts = shape_.groups == 1 ? pieces(shape_.in_c, t.channels) : 1;
    const int64_t places = shape_.batch * rows * columns, steps = places * blocks * parts;
    int64_t weight_loads = steps;
    if (blocks * parts == 1)
      weight_loads = shape_.weights_differ ? shape_.batch : 1;
    else if (parts == 1 && !t.filters_inside)
      weight_loads = blocks * (shape_.weights_differ ? shape_.batch : 1);
    int64_t input_loads = steps;
    if (shape_.groups == 1 && places * parts == 1)
      input_loads = 1;
    else if (shape_.groups == 1 && parts == 1 && t.filters_inside)
      input_loads = places;

    const int64_t channels = channels_read(shape_, t);
    const double input = shape_.input_stays ? 0
                                            : box_cycles(spec_, w[0].most_elements(t.rows, shape_.in_h),
                                                         w[1].most_elements(t.columns, shape_.in_w), channels,
                                                         shape_.in_w, shape_.in_c, elem_, false);
    const int64_t depth = shape_.groups == 1 ? t.channels : channels_of_group(shape_);
    const npu::Memory& constants = spec_.constants();
    double weights = shape_.weights_stay ? 0
                                         : transfer(shape_.weights_differ ? spec_.dram : constants,
                                                    taps * depth * t.filters * elem_, 1, false);
    if (shape_.biased) weights += transfer(constants, t.filters * kSumBytes, 1, false);
    if (is_integer()) weights += transfer(constants, t.filters * kFactorBytes, 1, false);
    const double output =
        shape_.output_stays ? 0
                            : box_cycles(spec_, t.rows, t.columns, t.filters, shape_.out_w, shape_.out_c, elem_, true);
    const double addend = shape_.adds && !shape_.addend_stays ? box_cycles(spec_, t.rows, t.columns, t.filters,
                                                                           shape_.out_w, shape_.out_c, elem_, false)
                                                              : 0;

    const int64_t last_rows = shape_.out_h - (rows - 1) * t.rows;
    const double work = work_of(t, t.rows, depth),
                 work_in_all = (work * static_cast<double>(rows - 1) + work_of(t, last_rows, depth)) *
                               static_cast<double>(shape_.batch * columns * blocks * parts);
    const double dma = input * static_cast<double>(input_loads) + weights * static_cast<double>(weight_loads) +
                       (addend + output) * static_cast<double>(places * blocks);
    // Transfers on their way together wait for one latency.
    const auto all = [](int64_t count, int64_t latency) {
      return static_cast<double>(count) * static_cast<double>(latency);
    };
    const double hidden = (all(shape_.input_stays ? 0 : input_loads, spec_.dram.read_latency_cycles) +
                           all(weight_loads, constants.read_latency_cycles) +
                           all(shape_.output_stays ? 0 : places * blocks, spec_.dram.write_latency_cycles)) *
                          (1 - 1 / static_cast<double>(spec_.dma.max_outstanding));
    return {.dma_cycles = dma,
            .engine_cycles = work_in_all,
            .edge_cycles = input + weights + addend + output,
            .first_cycles = input + weights,
            .last_cycles = output,
            .hidden_cycles = hidden,
            .steps = static_cast<double>(steps)};
  }

  // What the engine takes, or its scratchpad.
  double work_of(const Tile& t, int64_t rows, int64_t depth) const {
    const ops::Window& w = shape_.window;
    const int64_t input = w[0].most_elements(rows, shape_.in_h) * w[1].most_elements(t.columns, shape_.in_w),
                  made = rows * t.columns * t.filters;
    const bool split = shape_.groups == 1 && t.channels < shape_.in_c;
    npu::ContentBytes bytes = {input * channels_read(shape_, t) * elem_, ops::taps_of(w) * depth * t.filters * elem_};
    if (split)
      bytes[static_cast<size_t>(npu::Content::sums)] = made * 2 * kSumBytes;
    else
      bytes[static_cast<size_t>(npu::Content::maps)] += made * (shape_.adds ? 2 : 1) * elem_;
    return std::max(engine_of(t, rows, depth), static_cast<double>(npu::scratchpad_cycles(spec_, bytes)));
  }

 private:
  double engine_of(const Tile& t, int64_t rows, int64_t depth) const {
    if (shape_.whole_sums)
      return static_cast<double>(npu::mac_cycles(
          spec_, {.dtype = shape_.dtype, .out_w = rows, .in_c = depth, .out_c = t.filters, .is_rows = true}));
    Picture picture{rows, t.columns};
    if (shape_.is_rows) picture = picture_of(spec_, shape_, rows, t.filters, depth);
    const int64_t groups = shape_.groups == 1 ? 1 : t.filters / filters_of_group(shape_);
    return static_cast<double>(npu::mac_cycles(spec_, {.dtype = shape_.dtype,
                                                       .out_h = picture.rows,
                                                       .out_w = picture.columns,
                                                       .in_c = depth,
                                                       .out_c = t.filters / groups,
                                                       .kernel = ops::taps_of(shape_.window),
                                                       .groups = groups}));
  }

  const npu::Spec& spec_;
  const ProductShape& shape_;
  const int64_t budget_bytes_;
  const bool alone_;
  bool finely_;
  const int64_t elem_;
  const Units units_;
  std::vector<std::pair<double, Tile>> tried_;  // alone
  std::optional<Tile> best_;
  double least_cycles_ = std::numeric_limits<double>::infinity();
  int64_t least_bytes_ = std::numeric_limits<int64_t>::max();
};

}  // namespace

bool accumulates(const npu::Spec& spec, int64_t sums) {
  return spec.mac.accumulator_bytes == 0 || sums * kSumBytes <= spec.mac.accumulator_bytes;
}

Span positions_read(const ops::WindowAxis& w, int64_t first, int64_t count, int64_t in_size) {
  const ops::Interval read = w.elements(first, count, in_size);
  // Windows that lie in the padding alone are given the nearest element, behind them all.
  if (read.begin == read.end) return {std::min(read.begin, in_size - 1), 1, (count - 1) * w.stride + w.reach()};
  return {read.begin, read.end - read.begin, read.begin - w.begin(first)};
}

std::vector<int64_t> figures_of(const ProductShape& s) {
  std::vector<int64_t> out = {
      static_cast<int64_t>(s.dtype), s.batch, s.in_h, s.in_w, s.out_h, s.out_w, s.groups, s.in_c, s.out_c};
  for (const ops::WindowAxis& axis : s.window)
    out.insert(out.end(), {axis.kernel, axis.stride, axis.dilation, axis.before, axis.after});
  for (const bool flag : {s.biased, s.adds, s.is_rows, s.whole_sums, s.weights_differ, s.input_stays, s.output_stays,
                          s.addend_stays, s.weights_stay})
    out.push_back(flag ? 1 : 0);
  return out;
}

TileBuffers buffers_of(const ProductShape& s, const Tile& t) {
  const int64_t elem = dtype_bytes(s.dtype), taps = ops::taps_of(s.window);
  const int64_t depth = s.groups == 1 ? t.channels : channels_of_group(s);
  const int64_t places = s.batch * pieces(s.out_h, t.rows) * pieces(s.out_w, t.columns),
                blocks = pieces(s.out_c, t.filters), parts = s.groups == 1 ? pieces(s.in_c, t.channels) : 1;
  const auto buffers = [&](int64_t loads) { return t.overlaps && loads > 1 ? 2 : 1; };
  TileBuffers out;
  out.bias = s.weights_stay ? 0 : aligned(taps * depth * t.filters * elem);
  out.factors = aligned(out.bias + (s.biased ? t.filters * kSumBytes : 0));
  const int64_t factors = t.filters * kFactorBytes + (s.adds ? kAddendFactorBytes : 0);
  out.weights = aligned(out.factors + (s.dtype == DType::i8 ? factors : 0));
  if (!s.input_stays)
    out.input = aligned(s.window[0].most_elements(t.rows, s.in_h) * s.window[1].most_elements(t.columns, s.in_w) *
                        channels_read(s, t) * elem);
  if (!s.output_stays) out.output = aligned(t.rows * t.columns * t.filters * elem);
  out.sums = parts > 1 ? aligned(t.rows * t.columns * t.filters * kSumBytes) : 0;
  out.weight_buffers = buffers(blocks * parts * (s.weights_differ ? s.batch : 1));
  out.input_buffers = buffers(places * parts * (s.groups > 1 ? blocks : 1));  // groups read channels of their own
  out.output_buffers = buffers(places * blocks);
  return out;
}

Picture picture_of(const npu::Spec& spec, const ProductShape& shape, int64_t count, int64_t filters, int64_t channels) {
  Picture best{count, 1};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t columns = 1; columns <= std::min<int64_t>(count, 64); ++columns) {
    if (count % columns != 0) continue;
    const int64_t cycles = npu::mac_cycles(
        spec, {.dtype = shape.dtype, .out_h = count / columns, .out_w = columns, .in_c = channels, .out_c = filters});
    if (cycles < least) {
      least = cycles;
      best = {count / columns, columns};
    }
  }
  return best;
}

BestTiles::Found BestTiles::find(const ProductShape& shape, int64_t budget_bytes, const Tile* packed) {
  std::vector<int64_t> key = figures_of(shape);
  key.insert(key.end(), {budget_bytes, packed ? packed->filters : 0, packed ? packed->channels : 0});
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = found_.find(key); at != found_.end()) return at->second;
  }
  Search search(spec_, shape, budget_bytes);
  Found out;
  out.tile = packed ? search.run_as(*packed, out.needed_bytes) : search.run(out.needed_bytes);
  const std::lock_guard lock(mutex_);
  return found_.emplace(std::move(key), out).first->second;
}

std::vector<Tile> good_tiles(const npu::Spec& spec, const ProductShape& shape, int64_t budget_bytes, size_t count) {
  return Search(spec, shape, budget_bytes, /*alone=*/true).run(count);
}

TileCost cost_of(const npu::Spec& spec, const ProductShape& shape, const Tile& tile) {
  return Search(spec, shape, 0).cost(tile);
}

int64_t cycles_of_rows(const npu::Spec& spec, const ProductShape& shape, int64_t rows) {
  const Tile tile{.rows = rows, .columns = shape.out_w, .filters = shape.out_c, .channels = shape.in_c};
  return static_cast<int64_t>(
      Search(spec, shape, 0).work_of(tile, rows, shape.groups == 1 ? shape.in_c : channels_of_group(shape)));
}

}  // namespace hetnn::backends::scheduling
