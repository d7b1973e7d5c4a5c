// The buffers of groups, and places for them and for storages.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "hetnn/backends/npu/rearrange.h"
#include "hetnn/backends/npu/schedule.h"
#include "hetnn/base/error.h"
#include "hetnn/memory/fit.h"

namespace hetnn::backends::scheduling {
namespace {

// Whether some copy goes from DRAM to DRAM, by way of the scratchpad.
int64_t widest_run(const Network& network, const std::vector<Home>& homes, const Layer& layer) {
  int64_t out = 0;
  if (is_home(network, homes, *layer.output)) return 0;
  for (const Copy& copy : copies_of(layer, network)) {
    if (!is_home(network, homes, *copy.from)) out = std::max(out, copy.run_bytes);
  }
  return out;
}

class Placer {
  static constexpr int kMostRounds = 8;
  static constexpr int64_t kEarliest = 6;  // groups before its own

 public:
  Placer(const npu::Spec& spec, const Network& network, Schedule& schedule)
      : spec_(spec), network_(network), schedule_(schedule) {
    for (size_t g = 0; g < schedule.groups.size(); ++g) {
      for (size_t k = 0; k < schedule.groups[g].count; ++k) group_of_.push_back(static_cast<int64_t>(g));
    }
  }

  // The layers of crowded groups; none where everything has its place.
  std::vector<size_t> run() {
    place_arena();
    if (network_.layers().size() > kMostLayersSearched) return one_after_another();
    std::set<int64_t> crowded;
    for (size_t memory = 0; memory < spec_.sram.size(); ++memory) crowded.merge(place_in(memory));
    std::vector<size_t> out;
    for (size_t k = 0; k < group_of_.size(); ++k) {
      if (crowded.contains(group_of_[k])) out.push_back(k);
    }
    return out;
  }

  void place_arena() {
    std::vector<memory::Buffer> buffers;
    std::vector<size_t> which;
    for (size_t k = 0; k < network_.storages().size(); ++k) {
      const Storage& storage = network_.storages()[k];
      if (storage.is_constant || schedule_.homes[k].in_scratchpad) continue;
      // What never leaves a group lies in its rings alone.
      if (is_in_one_cascade(storage)) continue;
      const auto [first, last] = groups_of(storage);
      buffers.push_back({first, last + 1, storage.bytes});
      which.push_back(k);
    }
    const memory::Fit fit = memory::fit_greedy(buffers, kAlignment);
    schedule_.arena_bytes = fit.peak_bytes;
    for (size_t k = 0; k < which.size(); ++k) schedule_.homes[which[k]].offset_bytes = fit.offsets[k];
  }

 private:
  // The groups that find no place in the scratchpad.
  std::set<int64_t> place_in(size_t memory) {
    capacity_ = spec_.sram[memory].bytes;
    collect(memory);
    // What transfers may fill early and empty late has room beside its neighbours, as far as there is some.
    trim();
    memory::Fit fit = memory::fit_greedy(buffers(), kAlignment);
    for (int round = 0; fit.peak_bytes > capacity_ && round < kMostRounds && shorten(fit); ++round)
      fit = memory::fit_greedy(buffers(), kAlignment);
    if (fit.peak_bytes > capacity_ && memory::lower_bound_bytes(buffers(), kAlignment) <= capacity_) {
      constexpr double kSeconds = 0.01;
      fit = memory::fit(buffers(), capacity_,
                        {.alignment_bytes = kAlignment, .seconds = kSeconds, .heuristic_only = false})
                .fit;
    }
    if (fit.peak_bytes > capacity_) return crowded_groups(fit);
    for (size_t k = 0; k < items_.size(); ++k) *items_[k].offset = spec_.base_of(memory) + fit.offsets[k];
    return {};
  }

  struct Item {
    int64_t bytes;
    int64_t first, last;  // groups, both counted
    int64_t early = 0, late = 0;
    int64_t* offset;
  };
  std::pair<int64_t, int64_t> groups_of(const Storage& storage) const {
    const int64_t end = static_cast<int64_t>(schedule_.groups.size()) - 1;
    if (group_of_.empty()) return {0, 0};
    std::pair<int64_t, int64_t> out{group_of_[storage.first], group_of_[storage.last]};
    if (!storage.is_port) return out;
    // Inputs are there from the start, results until the end.
    return {network_.is_written(*storage.value) ? out.first : 0, network_.is_output(*storage.value) ? end : out.second};
  }

  bool is_in_one_cascade(const Storage& storage) const {
    const Group& group = schedule_.groups[static_cast<size_t>(group_of_[storage.first])];
    return group.rows > 0 && is_inside(storage, group);
  }

  void collect(size_t memory) {
    items_.clear();
    for (size_t k = 0; k < network_.storages().size(); ++k) {
      if (!schedule_.homes[k].in_scratchpad || memory != spec_.memory_of(npu::Content::maps)) continue;
      const auto [first, last] = groups_of(network_.storages()[k]);
      items_.push_back({.bytes = network_.storages()[k].bytes,
                        .first = first,
                        .last = last,
                        .offset = &schedule_.homes[k].offset_bytes});
    }
    for (size_t g = 0; g < schedule_.groups.size(); ++g) {
      for (Buffer& buffer : schedule_.groups[g].buffers) {
        if (memory_of(buffer) != memory) continue;
        const auto at = static_cast<int64_t>(g);
        Item item{.bytes = buffer.total_bytes(), .first = at, .last = at, .offset = &buffer.offset_bytes};
        if (buffer.use == Use::parameters || buffer.use == Use::input || buffer.use == Use::ring)
          item.early = kEarliest;
        if (buffer.use == Use::output || buffer.use == Use::ring) item.late = 1;
        items_.push_back(item);
      }
    }
  }

  std::vector<memory::Buffer> buffers() const {
    std::vector<memory::Buffer> out;
    for (const Item& item : items_)
      out.push_back({std::max<int64_t>(item.first - item.early, 0), item.last + item.late + 1, item.bytes});
    return out;
  }

  // Groups during which something lies beyond the capacity.
  std::set<int64_t> crowded_groups(const memory::Fit& fit) const {
    std::set<int64_t> out;
    for (size_t k = 0; k < items_.size(); ++k) {
      if (fit.offsets[k] + items_[k].bytes <= capacity_) continue;
      for (int64_t g = items_[k].first - items_[k].early; g <= items_[k].last + items_[k].late; ++g) out.insert(g);
    }
    return out;
  }

  // Takes spare time of the largest from groups in which more would be alive than there is room for.
  void trim() {
    std::vector<int64_t> alive(schedule_.groups.size());
    const auto last_group = static_cast<int64_t>(alive.size()) - 1;
    const auto count = [&](int64_t first, int64_t last, int64_t bytes) {
      for (int64_t g = std::max<int64_t>(first, 0); g <= std::min(last, last_group); ++g)
        alive[static_cast<size_t>(g)] += bytes;
    };
    for (const Item& item : items_) count(item.first - item.early, item.last + item.late, aligned(item.bytes));
    std::vector<Item*> largest_first;
    for (Item& item : items_) largest_first.push_back(&item);
    std::stable_sort(largest_first.begin(), largest_first.end(),
                     [](const Item* a, const Item* b) { return a->bytes > b->bytes; });
    const auto full = [&](int64_t g) { return g >= 0 && g <= last_group && alive[static_cast<size_t>(g)] > capacity_; };
    for (Item* item : largest_first) {
      if (item->late > 0 && full(item->last + 1)) {
        item->late = 0;
        count(item->last + 1, item->last + 1, -aligned(item->bytes));
      }
      int64_t early = 0;
      while (early < item->early && !full(item->first - early - 1)) ++early;
      count(item->first - item->early, item->first - early - 1, -aligned(item->bytes));
      item->early = early;
    }
  }

  // Takes the spare time from all that lies in crowded groups; false where nothing there has any.
  bool shorten(const memory::Fit& fit) {
    const std::set<int64_t> crowded = crowded_groups(fit);
    bool some = false;
    for (size_t k = 0; k < items_.size(); ++k) {
      Item& item = items_[k];
      const bool beyond = fit.offsets[k] + item.bytes > capacity_;
      if (item.late > 0 && (beyond || crowded.contains(item.last + 1))) {
        item.late = 0;
        some = true;
      } else if (item.early > 0 && (beyond || crowded.contains(item.first - item.early))) {
        item.early = item.early / 2;
        some = true;
      }
    }
    return some;
  }

  // Of very many groups each has the scratchpad for itself; nothing stays in it.
  std::vector<size_t> one_after_another() {
    std::vector<size_t> crowded;
    for (Group& group : schedule_.groups) {
      std::array<int64_t, npu::kMostScratchpads> used = {};
      bool fits = true;
      for (Buffer& buffer : group.buffers) {
        const size_t memory = memory_of(buffer);
        int64_t& at = used[memory];
        buffer.offset_bytes = spec_.base_of(memory) + at;
        at = aligned(at + buffer.total_bytes());
        fits = fits && at <= aligned(spec_.sram[memory].bytes);
      }
      if (!fits) crowded.push_back(group.first);
    }
    return crowded;
  }

  size_t memory_of(const Buffer& buffer) const { return spec_.memory_of(content_of(network_, buffer)); }

  const npu::Spec& spec_;
  int64_t capacity_ = 0;  // of the scratchpad that is being filled
  const Network& network_;
  Schedule& schedule_;
  std::vector<int64_t> group_of_;  // by layer
  std::vector<Item> items_;
};

}  // namespace

std::string_view use_name(Use use) {
  constexpr std::string_view kNames[] = {"parameters", "ring", "input", "output", "sums", "moved"};
  return kNames[static_cast<size_t>(use)];
}

const Buffer* Group::find(Use use, size_t of) const {
  const auto at = std::find_if(buffers.begin(), buffers.end(),
                               [&](const Buffer& buffer) { return buffer.use == use && buffer.of == of; });
  return at == buffers.end() ? nullptr : &*at;
}

bool is_inside(const Storage& storage, const Group& group) {
  return !storage.is_port && !storage.is_constant && storage.first >= group.first &&
         storage.last < group.first + group.count;
}

ProductShape shape_at_home(const Network& network, const std::vector<Home>& homes, const Layer& layer) {
  ProductShape out = layer.product;
  out.input_stays = is_home(network, homes, *layer.inputs[0]);
  out.output_stays = is_home(network, homes, *layer.output);
  out.addend_stays = layer.addend() && is_home(network, homes, *layer.addend());
  out.weights_stay = layer.form == Form::matrices && is_home(network, homes, *layer.inputs[1]);
  return out;
}

std::vector<Buffer> buffers_of(const Network& network, const std::vector<Home>& homes, const Group& group) {
  std::vector<Buffer> out;
  const auto add = [&](Use use, size_t of, int64_t bytes, int64_t depth) {
    if (bytes * depth > 0) out.push_back({use, of, bytes, depth});
  };
  if (group.rows > 0) {
    for (size_t k = group.first; k < group.first + group.count; ++k)
      add(Use::parameters, k, network.layers()[k].parameters().bytes, 1);
    for (const auto& [at, rows] : stripes_of(network, homes, group).ring_rows) {
      const Frame& frame = network.frames()[at];
      add(Use::ring, at, frame.map.w * frame.pixel_bytes, std::min(rows, frame.map.h));
    }
    return out;
  }
  const size_t at = group.first;
  const Layer& layer = network.layers()[at];
  const Tile& t = group.tile;
  const int64_t depth = t.overlaps ? 2 : 1;
  switch (layer.form) {
    case Form::product:
    case Form::matrices: {
      const TileBuffers b = buffers_of(shape_at_home(network, homes, layer), t);
      add(Use::parameters, at, b.weights, b.weight_buffers);
      add(Use::input, at, b.input, b.input_buffers);
      add(Use::output, at, b.output, b.output_buffers);
      add(Use::sums, at, b.sums, 1);
      break;
    }
    case Form::pool:
    case Form::pair:
    case Form::unary:
    case Form::rows: {
      add(Use::parameters, at, layer.parameters().bytes, 1);
      const bool windowed = layer.form == Form::pool;
      const int64_t rows = windowed ? layer.window[0].most_elements(t.rows, layer.in.h) : t.rows;
      const int64_t columns = windowed ? layer.in.w : t.columns;
      int64_t operands = 0;
      for (const ir::Value* input : layer.inputs) operands += !is_home(network, homes, *input);
      // Operands take turns; one that lies at home leaves its turn empty.
      if (operands > 0)
        add(Use::input, at, aligned(rows * columns * t.channels * layer.elem),
            depth * static_cast<int64_t>(layer.inputs.size()));
      if (!is_home(network, homes, *layer.output))
        add(Use::output, at, aligned(t.rows * t.columns * t.channels * layer.elem), depth);
      break;
    }
    case Form::concat:
    case Form::slice:
      if (widest_run(network, homes, layer) > 0) add(Use::moved, at, t.rows, depth);
      break;
    case Form::rearrange: {
      const Slabs slabs = slabs_of(layer, network.bindings());
      const int64_t each = std::max(slabs.in.runs * slabs.in.run_bytes, slabs.out.runs * slabs.out.run_bytes),
                    bytes = aligned(each * std::min(t.rows, slabs.count));
      const auto steps = static_cast<int64_t>(moves_of(layer, network.bindings()).size());
      const bool from = is_home(network, homes, *layer.inputs[0]), to = is_home(network, homes, *layer.output);
      if (!(from && to && steps < 2)) add(Use::moved, at, bytes, 2 * depth);
      break;
    }
    case Form::view:
      break;
  }
  return out;
}

std::vector<size_t> place(const npu::Spec& spec, const Network& network, Schedule& schedule) {
  return Placer(spec, network, schedule).run();
}

void place_arena(const npu::Spec& spec, const Network& network, Schedule& schedule) {
  Placer(spec, network, schedule).place_arena();
}

bool may_stay(const npu::Spec& spec, const Network& network, size_t storage) {
  if (&spec.home(npu::Content::maps) == &spec.home(npu::Content::weights)) return true;
  const Storage& s = network.storages()[storage];
  for (size_t k = s.first; k <= s.last; ++k) {
    const Layer& layer = network.layers()[k];
    if (layer.form == Form::matrices && network.frame(*layer.inputs[1]).storage == storage) return false;
  }
  return true;
}

npu::Content content_of(const Network& network, const Buffer& buffer) {
  if (buffer.use == Use::sums) return npu::Content::sums;
  const bool weights = buffer.use == Use::parameters && network.layers()[buffer.of].engine() == npu::Engine::mac;
  return weights ? npu::Content::weights : npu::Content::maps;
}

npu::ContentBytes bytes_of(const Network& network, const std::vector<Buffer>& buffers) {
  npu::ContentBytes out = {};
  for (const Buffer& buffer : buffers)
    out[static_cast<size_t>(content_of(network, buffer))] += aligned(buffer.total_bytes());
  return out;
}

std::string why_no_group(const Network& network, const Group& group) {
  const Layer& last = network.layers()[group.first + group.count - 1];
  const auto of_layer = [&](std::string_view what) { return text(ir::describe(last.node()), " ", what); };
  if (group.rows > 0) {
    if (!last.streams) return of_layer("is not computed row by row, so that it is in no cascade.");
    if (last.out.n != network.layers()[group.first].out.n) return of_layer("has another number of images.");
    if (last.out.elems() == 0) return of_layer("computes nothing.");
    if (last.row && network.is_written(*last.row) && network.storage(*last.row).first >= group.first)
      return of_layer(text("reads all of '", last.row->name(), "', which the cascade computes row by row."));
    return {};
  }
  const Tile& t = group.tile;
  const ProductShape& s = last.product;
  switch (last.form) {
    case Form::product:
    case Form::matrices:
      if (t.rows > s.out_h || t.columns > s.out_w || t.filters > s.out_c || t.channels > s.in_c)
        return of_layer(text("has ", s.out_h, " rows, ", s.out_w, " columns, ", s.out_c, " filters and ", s.in_c,
                             " channels; the tile is larger."));
      if (s.groups > 1 && t.filters % (s.out_c / s.groups) != 0)
        return of_layer(text("takes ", s.out_c / s.groups, " filters of a group at once."));
      if ((s.groups > 1 || s.whole_sums) && t.channels != s.in_c)
        return of_layer(text("takes its ", s.in_c, " channels at once."));
      break;
    case Form::pool:
      if (t.columns != last.out.w) return of_layer(text("takes its ", last.out.w, " columns at once."));
      break;
    case Form::rows:
      if (t.channels != last.out.c) return of_layer(text("takes its ", last.out.c, " channels at once."));
      break;
    case Form::concat:
    case Form::slice:
      for (const Copy& copy : copies_of(last, network)) {
        if (copy.run_bytes > t.rows) return of_layer(text("copies runs of ", copy.run_bytes, " bytes."));
      }
      break;
    default:
      break;
  }
  return {};
}

}  // namespace hetnn::backends::scheduling
