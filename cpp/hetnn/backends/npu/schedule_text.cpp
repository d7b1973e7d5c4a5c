// One line a value, a group, a layer, a buffer.
#include "hetnn/backends/npu/schedule_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "hetnn/base/error.h"
#include "hetnn/base/quoted.h"

namespace hetnn::backends::scheduling {
namespace {

// A line: words, a name in quotation marks, and key=value.
struct Line {
  int number = 0;
  std::string word, name;
  std::string place;  // the word behind a value's name
  std::map<std::string, int64_t, std::less<>> figures;

  [[noreturn]] void fail(const std::string& what) const {
    throw InvalidModel(text("schedule, line ", number, ": ", what));
  }
  int64_t at_least(std::string_view key, int64_t least) const {
    const auto figure = figures.find(key);
    if (figure == figures.end()) fail(text("'", word, "' has no ", key, "."));
    if (figure->second < least) fail(text(key, " is ", figure->second, "; it must be at least ", least, "."));
    return figure->second;
  }
  void know(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : figures) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) fail(text("'", word, "' has no figure ", key, "."));
    }
  }
};

std::vector<Line> lines_of(std::string_view source) {
  std::vector<Line> out;
  int number = 0;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size());
    std::string_view rest = source.substr(0, end);
    source.remove_prefix(std::min(end + 1, source.size()));
    Line line{.number = ++number, .word = {}, .name = {}, .place = {}, .figures = {}};
    while (true) {
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r"), rest.size()));
      if (rest.empty() || rest.front() == '#') break;
      if (rest.front() == '"') {
        std::optional<std::string> name = take_quoted(rest);
        if (!name) line.fail("a name has no second quotation mark.");
        line.name = *std::move(name);
        continue;
      }
      const std::string_view item = rest.substr(0, rest.find_first_of(" \t\r"));
      rest.remove_prefix(item.size());
      const size_t equals = item.find('=');
      if (equals == std::string_view::npos) {
        (line.word.empty() ? line.word : line.place) = std::string(item);
        continue;
      }
      int64_t value = 0;
      const std::string_view digits = item.substr(equals + 1);
      const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      constexpr int64_t kMost = int64_t{1} << 48;
      if (error != std::errc() || stop != digits.data() + digits.size() || value < 0 || value > kMost)
        line.fail(text("'", item, "' must be a key and an integer from 0 to 2^48."));
      const auto [at, added] = line.figures.try_emplace(std::string(item.substr(0, equals)), value);
      if (!added) line.fail(text("the figure ", at->first, " comes twice."));
    }
    if (!line.word.empty()) out.push_back(std::move(line));
  }
  return out;
}

class Reader {
 public:
  Reader(const npu::Spec& spec, const Network& network) : spec_(spec), network_(network) {
    for (size_t k = 0; k < network.layers().size(); ++k) layers_[std::string(network.layers()[k].node().name())] = k;
    for (size_t k = 0; k < network.storages().size(); ++k) {
      if (!network.storages()[k].is_constant) storages_[std::string(network.storages()[k].value->name())] = k;
    }
    for (size_t k = 0; k < network.frames().size(); ++k)
      frames_.try_emplace(std::string(network.frames()[k].value->name()), k);
    out_.homes.resize(network.storages().size());
  }

  Schedule run(std::string_view source) {
    const std::vector<Line> lines = lines_of(source);
    for (const Line& line : lines) {
      if (line.word == "value")
        value(line);
      else if (line.word == "cascade" || line.word == "tiled")
        group(line);
      else if (line.word == "layer")
        layer(line);
      else
        buffer(line);
    }
    if (next_ != network_.layers().size())
      throw InvalidModel(text("schedule: it leaves out ", ir::describe(network_.layers()[next_].node()), "; it has ",
                              next_, " of ", network_.layers().size(), " layers."));
    for (size_t g = 0; g < out_.groups.size(); ++g) check(out_.groups[g], *group_lines_[g]);
    arena();
    if (!placed_) find_places();
    if (placed_) check_places();
    return std::move(out_);
  }

 private:
  template <typename M>
  size_t known(const Line& line, const M& names, std::string_view what) const {
    const auto at = names.find(line.name);
    if (at == names.end()) line.fail(text("the network has no ", what, " ", in_quotes(line.name), "."));
    return at->second;
  }

  void value(const Line& line) {
    line.know({"at", "bytes"});
    Home& home = out_.homes[known(line, storages_, "value")];
    const Storage& storage = network_.storages()[storages_.at(line.name)];
    if (line.place == "dram") return;
    if (line.place != "scratchpad") line.fail(text("a value lies in 'scratchpad' or 'dram'; got '", line.place, "'."));
    if (storage.is_port) line.fail(text("the input or output ", in_quotes(line.name), " lies in dram."));
    if (!may_stay(spec_, network_, storages_.at(line.name)))
      line.fail(text("the value ", in_quotes(line.name),
                     " is read as weights, from a scratchpad of their own; it goes "
                     "through the memory."));
    if (home.in_scratchpad) line.fail(text("the value ", in_quotes(line.name), " comes twice."));
    home.in_scratchpad = true;
    if (line.figures.contains("at"))
      home.offset_bytes = line.at_least("at", 0);
    else
      placed_ = false;
  }

  void group(const Line& line) {
    finish(line);
    Group group{.first = next_, .count = 0};
    if (line.word == "cascade") {
      line.know({"rows", "ahead"});
      group.rows = line.at_least("rows", 1);
      group.ahead = std::min<int64_t>(line.at_least("ahead", 0), 8);
    } else {
      line.know({"rows", "columns", "filters", "channels", "filters_inside", "overlaps"});
      group.tile = {.rows = line.at_least("rows", 1),
                    .columns = line.at_least("columns", 1),
                    .filters = line.at_least("filters", 1),
                    .channels = line.at_least("channels", 1),
                    .filters_inside = line.at_least("filters_inside", 0) != 0,
                    .overlaps = line.at_least("overlaps", 0) != 0};
    }
    out_.groups.push_back(group);
    group_lines_.push_back(std::make_unique<Line>(line));
  }
  void finish(const Line& line) const {
    if (!out_.groups.empty() && out_.groups.back().count == 0) line.fail("the group before has no layer.");
  }

  void layer(const Line& line) {
    line.know({});
    const size_t at = known(line, layers_, "layer");
    if (out_.groups.empty()) line.fail("a layer stands before the first group.");
    if (at != next_) {
      line.fail(at < next_ ? text("the layer ", in_quotes(line.name), " comes twice, or behind those that read it.")
                           : text("the layer ", in_quotes(std::string(network_.layers()[next_].node().name())),
                                  " comes before ", in_quotes(line.name), "."));
    }
    Group& group = out_.groups.back();
    ++group.count;
    ++next_;
    if (group.rows == 0 && group.count > 1)
      line.fail(text("a tiled group has one layer; ", in_quotes(line.name), " is its second. Several make a cascade."));
  }

  void buffer(const Line& line) {
    constexpr Use kUses[] = {Use::parameters, Use::ring, Use::input, Use::output, Use::sums, Use::moved};
    const auto* use = std::find_if(std::begin(kUses), std::end(kUses), [&](Use u) { return use_name(u) == line.word; });
    if (use == std::end(kUses))
      line.fail(text("'", line.word, "' is none of value, cascade, tiled, layer and buffers."));
    if (out_.groups.empty()) line.fail("a buffer stands before the first group.");
    line.know({"at", "bytes", "depth"});
    Buffer out{.use = *use,
               .of = *use == Use::ring ? known(line, frames_, "value") : known(line, layers_, "layer"),
               .bytes = line.figures.contains("bytes") ? line.at_least("bytes", 0) : -1,
               .depth = line.at_least("depth", 1)};
    if (line.figures.contains("at"))
      out.offset_bytes = line.at_least("at", 0);
    else
      placed_ = false;
    std::vector<Buffer>& buffers = out_.groups.back().buffers;
    if (std::any_of(buffers.begin(), buffers.end(),
                    [&](const Buffer& b) { return b.use == out.use && b.of == out.of; }))
      line.fail(text("the buffer ", describe(out), " comes twice in its group."));
    buffers.push_back(out);
  }

  // What the group needs, each as large as it is and at least as deep as it must be.
  void check(Group& group, const Line& line) {
    if (group.count == 0) line.fail("the group has no layer.");
    if (const std::string wrong = why_no_group(network_, group); !wrong.empty()) line.fail(wrong);
    Group least = group;
    least.tile.overlaps = false;
    const std::vector<Buffer> needed = buffers_of(network_, out_.homes, group),
                              smallest = buffers_of(network_, out_.homes, least);
    for (const Buffer& given : group.buffers) {
      if (std::none_of(needed.begin(), needed.end(),
                       [&](const Buffer& b) { return b.use == given.use && b.of == given.of; }))
        line.fail(text("the group has no use for the buffer ", describe(given), "."));
    }
    for (const Buffer& want : needed) {
      Buffer* given = nullptr;
      for (Buffer& each : group.buffers) {
        if (each.use == want.use && each.of == want.of) given = &each;
      }
      if (!given) {
        group.buffers.push_back(want);
        placed_ = false;
        continue;
      }
      const auto low = std::find_if(smallest.begin(), smallest.end(),
                                    [&](const Buffer& b) { return b.use == want.use && b.of == want.of; });
      const int64_t depth = group.rows > 0 || low == smallest.end() ? want.depth : low->depth;
      if (given->bytes >= 0 && given->bytes != want.bytes)
        line.fail(text("the buffer ", describe(want), " takes ", want.bytes, " bytes; got ", given->bytes, "."));
      constexpr int64_t kDeepest = int64_t{1} << 20;
      if (given->depth < depth || given->depth > kDeepest)
        line.fail(text("the buffer ", describe(want), " has a depth of at least ", depth, " and at most ", kDeepest,
                       "; got ", given->depth, "."));
      if (given->depth % (want.use == Use::input && network_.layers()[group.first].form != Form::product &&
                                  network_.layers()[group.first].form != Form::matrices && group.rows == 0
                              ? depth
                              : 1) !=
          0)
        line.fail(text("the buffer ", describe(want), " has a depth that is a multiple of ", depth, "."));
      given->bytes = want.bytes;
    }
  }
  std::string describe(const Buffer& buffer) const {
    const std::string_view name = buffer.use == Use::ring
                                      ? network_.frames()[buffer.of].value->name()
                                      : std::string_view(network_.layers()[buffer.of].node().name());
    return text(use_name(buffer.use), " ", in_quotes(name));
  }

  // Places in DRAM are not the schedule's.
  void arena() {
    Schedule copy = out_;
    for (Group& group : copy.groups) group.buffers.clear();
    for (size_t k = 0; k < copy.homes.size(); ++k) copy.homes[k].offset_bytes = 0;
    place_arena(spec_, network_, copy);
    out_.arena_bytes = copy.arena_bytes;
    for (size_t k = 0; k < copy.homes.size(); ++k) {
      if (!out_.homes[k].in_scratchpad) out_.homes[k].offset_bytes = copy.homes[k].offset_bytes;
    }
  }

  // Says of the most crowded group how many bytes it asks for.
  void find_places() {
    if (place(spec_, network_, out_).empty()) return;
    const Group* crowded = &out_.groups.front();
    size_t scarce = 0;
    double most = 0;
    for (const Group& group : out_.groups) {
      const std::vector<int64_t> bytes = bytes_of_scratchpads(group);
      for (size_t k = 0; k < bytes.size(); ++k) {
        const double share = static_cast<double>(bytes[k]) / static_cast<double>(spec_.sram[k].bytes);
        if (share > most) most = share, crowded = &group, scarce = k;
      }
    }
    throw DoesNotFit(text("schedule: no places are found for all; while layer ",
                          in_quotes(std::string(network_.layers()[crowded->first].node().name())),
                          " is computed, values and buffers take ", bytes_of_scratchpads(*crowded)[scarce],
                          " bytes of ", scratchpad_text(scarce), "; ", spec_.name, " has ", spec_.sram[scarce].bytes,
                          "."));
  }

  std::string scratchpad_text(size_t memory) const {
    const std::string& name = spec_.sram[memory].name;
    return name.empty() ? std::string("scratchpad") : text("scratchpad '", name, "'");
  }

  std::vector<int64_t> bytes_of_scratchpads(const Group& group) const {
    std::vector<int64_t> out(spec_.sram.size());
    for (size_t k = 0; k < out_.homes.size(); ++k) {
      if (is_alive(k, group)) out[spec_.memory_of(npu::Content::maps)] += aligned(network_.storages()[k].bytes);
    }
    for (const Buffer& buffer : group.buffers)
      out[spec_.memory_of(content_of(network_, buffer))] += aligned(buffer.total_bytes());
    return out;
  }

  bool is_alive(size_t storage, const Group& group) const {
    const Storage& s = network_.storages()[storage];
    return out_.homes[storage].in_scratchpad && s.first < group.first + group.count && s.last >= group.first;
  }

  void check_places() const {
    struct Range {
      int64_t begin, end;
      std::string what;
      size_t memory;
    };
    for (const Group& group : out_.groups) {
      std::vector<Range> ranges;
      for (size_t k = 0; k < out_.homes.size(); ++k) {
        const Storage& storage = network_.storages()[k];
        if (is_alive(k, group))
          ranges.push_back({out_.homes[k].offset_bytes, out_.homes[k].offset_bytes + storage.bytes,
                            text("the value ", in_quotes(storage.value->name())), spec_.memory_of(npu::Content::maps)});
      }
      for (const Buffer& buffer : group.buffers)
        ranges.push_back({buffer.offset_bytes, buffer.offset_bytes + buffer.total_bytes(), describe(buffer),
                          spec_.memory_of(content_of(network_, buffer))});
      std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
      const Range* before = nullptr;
      for (const Range& range : ranges) {
        if (range.begin == range.end) continue;
        const int64_t base = spec_.base_of(range.memory), bytes = spec_.sram[range.memory].bytes;
        if (range.end > base + bytes)
          throw DoesNotFit(text("schedule: ", range.what, " ends at byte ", range.end - base, " of the ",
                                scratchpad_text(range.memory), ", which has ", bytes, "."));
        if (range.begin < base)
          throw InvalidModel(text("schedule: ", range.what, " begins at byte ", range.begin, "; the ",
                                  scratchpad_text(range.memory), ", in which it lies, begins at ", base, "."));
        if (before && range.begin < before->end)
          throw InvalidModel(text("schedule: ", before->what, " at bytes [", before->begin, ", ", before->end, ") and ",
                                  range.what, " at [", range.begin, ", ", range.end, ") overlap while layer ",
                                  in_quotes(std::string(network_.layers()[group.first].node().name())),
                                  " is computed."));
        before = &range;
      }
    }
  }

  const npu::Spec& spec_;
  const Network& network_;
  std::map<std::string, size_t, std::less<>> layers_, storages_, frames_;
  std::vector<std::unique_ptr<Line>> group_lines_;
  Schedule out_;
  size_t next_ = 0;     // layer
  bool placed_ = true;  // everything has its place
};

}  // namespace

std::string tile_text(const Group& group) {
  if (group.rows > 0) return text("rows=", group.rows);
  const Tile& t = group.tile;
  return text("rows=", t.rows, " columns=", t.columns, " filters=", t.filters, " channels=", t.channels);
}

std::string schedule_text(const Network& network, const Schedule& schedule) {
  std::string out;
  for (size_t k = 0; k < schedule.homes.size(); ++k) {
    const Storage& storage = network.storages()[k];
    if (schedule.homes[k].in_scratchpad)
      out += text("value ", in_quotes(storage.value->name()), " scratchpad at=", schedule.homes[k].offset_bytes,
                  " bytes=", storage.bytes, "\n");
  }
  for (const Group& group : schedule.groups) {
    out += group.rows > 0 ? text("cascade rows=", group.rows, " ahead=", group.ahead, "\n")
                          : text("tiled ", tile_text(group), " filters_inside=", int{group.tile.filters_inside},
                                 " overlaps=", int{group.tile.overlaps}, "\n");
    for (size_t k = group.first; k < group.first + group.count; ++k)
      out += text("  layer ", in_quotes(network.layers()[k].node().name()), "\n");
    for (const Buffer& buffer : group.buffers) {
      const std::string name(buffer.use == Use::ring ? network.frames()[buffer.of].value->name()
                                                     : network.layers()[buffer.of].node().name());
      out += text("  ", use_name(buffer.use), " ", in_quotes(name), " at=", buffer.offset_bytes,
                  " bytes=", buffer.bytes, " depth=", buffer.depth, "\n");
    }
  }
  return out;
}

Schedule read_schedule(const npu::Spec& spec, const Network& network, std::string_view source) {
  return Reader(spec, network).run(source);
}

}  // namespace hetnn::backends::scheduling
