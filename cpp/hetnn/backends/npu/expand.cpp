// Groups step by step: cascades by their events, tiled layers by their loops, copies and moves.
#include "hetnn/backends/npu/expand.h"

#include <algorithm>

#include "hetnn/backends/backend.h"
#include "hetnn/backends/npu/emit.h"
#include "hetnn/backends/npu/rearrange.h"
#include "hetnn/base/error.h"
#include "hetnn/ops/nest.h"

namespace hetnn::backends::scheduling {
namespace {

using npu::DmaLoad;
using npu::DmaStore;
using npu::Instruction;
using npu::Region;

// A transfer keeps all others waiting, such as the rows that an engine needs next. Long ones are cut, where pieces on
// their way hide each other's latency.
int64_t piece_bytes(const npu::Spec& spec, int64_t bytes) {
  constexpr double kLongest_cycles = 1000;
  constexpr int64_t kMostPieces = 64;
  if (spec.dma.max_outstanding == 1) return bytes;
  const double longest = std::min(kLongest_cycles * spec.constants().rate(), static_cast<double>(bytes));
  const int64_t unit = std::max(kAlignment, spec.constants().burst_bytes);
  return std::max({static_cast<int64_t>(longest) / unit * unit, bytes / kMostPieces / unit * unit + unit});
}

// Where rows of a value begin in DRAM.
struct Place {
  Region region = Region::arena;
  int64_t offset_bytes = 0, row_pitch = 0, pixel_pitch = 0;
};

class Expander {
 public:
  Expander(const npu::Spec& spec, const Network& network, const Schedule& schedule, Packer& packer)
      : spec_(spec), network_(network), schedule_(schedule), packer_(packer) {}

  Expanded run() {
    for (const Group& group : schedule_.groups) {
      group_ = &group;
      layer_ = group.first;
      begin_ = out_.instructions.size();
      if (group.rows > 0) {
        cascade();
        continue;
      }
      switch (layer().form) {
        case Form::product:
        case Form::matrices:
          product();
          break;
        case Form::pool:
        case Form::pair:
        case Form::unary:
        case Form::rows:
          pieces();
          break;
        case Form::concat:
        case Form::slice:
          copies();
          break;
        case Form::rearrange:
          rearrange();
          break;
        default:
          break;
      }
    }
    return std::move(out_);
  }

 private:
  const Layer& layer() const { return network_.layers()[layer_]; }
  bool is_home(const ir::Value& value) const { return scheduling::is_home(network_, schedule_.homes, value); }
  const Home& home(const ir::Value& value) const { return schedule_.homes[network_.frame(value).storage]; }
  int64_t elem(const ir::Value& value) const { return dtype_bytes(value.dtype()); }

  void add(const Instruction& instruction) {
    if (static_cast<int64_t>(out_.instructions.size() - begin_) >=
        kMostInstructions * static_cast<int64_t>(group_->count)) {
      const ir::Node& node = layer().node();
      throw NodeDoesNotFit(text(ir::describe(node), ": its tiles take more than ", kMostInstructions,
                                " instructions. Cut the layer into smaller ones, or pin the node to the cpu."),
                           std::string(node.name()));
    }
    out_.instructions.push_back(instruction);
    out_.layers.push_back(layer_);
  }

  // A place of the group's scratchpad.
  int64_t at(Use use, size_t of, int64_t turn = 0) const {
    const Buffer& buffer = *group_->find(use, of);
    return buffer.offset_bytes + turn % buffer.depth * buffer.bytes;
  }

  // Elements of a value that lies in the scratchpad as a whole, from the given one on.
  View home_view(const ir::Value& value, int64_t n, int64_t row, int64_t column = 0, int64_t channel = 0) const {
    const Frame& frame = network_.frame(value);
    const int64_t pixel = (n * frame.map.h + row) * frame.map.w + column;
    return {.addr = home(value).offset_bytes + network_.part(value).offset_bytes + pixel * frame.pixel_bytes +
                    channel * elem(value),
            .row_pitch = frame.map.w * frame.pixel_bytes,
            .pixel_pitch = frame.pixel_bytes};
  }
  Place place(const ir::Value& value, int64_t n, int64_t row, int64_t column = 0, int64_t channel = 0) {
    const Frame& frame = network_.frame(value);
    const bool constant = network_.storage(value).is_constant;
    const int64_t pixel = (n * frame.map.h + row) * frame.map.w + column;
    return {constant ? Region::weights : Region::arena,
            (constant ? packer_.map(value) : home(value).offset_bytes) + network_.part(value).offset_bytes +
                pixel * frame.pixel_bytes + channel * elem(value),
            frame.map.w * frame.pixel_bytes, frame.pixel_bytes};
  }
  // Rows in a ring of the group, or at home.
  View rows_view(const ir::Value& value, int64_t n, int64_t row, int64_t count) const {
    if (is_home(value)) return home_view(value, n, row);
    const Part& part = network_.part(value);
    const Frame& frame = network_.frames()[part.frame];
    const Buffer& ring = *group_->find(Use::ring, part.frame);
    const int64_t slot = row % ring.depth, begin = ring.offset_bytes + part.offset_bytes;
    HETNN_ASSERT(count <= ring.depth, "a ring of ", ring.depth, " rows of '", value.name(), "' holds ", count);
    View out{.addr = begin + slot * ring.bytes, .row_pitch = ring.bytes, .pixel_pitch = frame.pixel_bytes};
    if (slot + count > ring.depth) out.wrap_row = ring.depth - slot, out.wrap_addr = begin;
    return out;
  }

  // Rows x columns of so many bytes between DRAM and the scratchpad. Runs that touch on both sides are one: every run
  // costs whole bursts.
  template <typename Transfer>
  void transfer(const Place& dram, const View& sram, int64_t rows, int64_t columns, int64_t bytes) {
    if (rows * columns * bytes == 0) return;
    if (sram.wrap_row > 0 && sram.wrap_row < rows) {
      Place rest = dram;
      rest.offset_bytes += sram.wrap_row * dram.row_pitch;
      transfer<Transfer>(dram, {sram.addr, sram.row_pitch, sram.pixel_pitch}, sram.wrap_row, columns, bytes);
      transfer<Transfer>(rest, {sram.wrap_addr, sram.row_pitch, sram.pixel_pitch}, rows - sram.wrap_row, columns,
                         bytes);
      return;
    }
    Transfer out{.region = static_cast<int64_t>(dram.region),
                 .dram_addr = dram.offset_bytes,
                 .sram_addr = sram.addr,
                 .size0 = bytes,
                 .size1 = columns,
                 .size2 = rows,
                 .dram_stride1 = dram.pixel_pitch,
                 .dram_stride2 = dram.row_pitch,
                 .sram_stride1 = sram.pixel_pitch,
                 .sram_stride2 = sram.row_pitch};
    const auto join = [&] {
      if (out.size1 == 1) {
        out.size1 = out.size2, out.dram_stride1 = out.dram_stride2, out.sram_stride1 = out.sram_stride2;
        out.size2 = 1;
      }
      if (out.size1 > 1 && out.dram_stride1 == out.size0 && out.sram_stride1 == out.size0) {
        out.size0 *= out.size1;
        out.size1 = out.size2, out.dram_stride1 = out.dram_stride2, out.sram_stride1 = out.sram_stride2;
        out.size2 = 1;
      }
    };
    join();
    join();
    if (out.size2 > 1 && out.dram_stride2 == out.size1 * out.dram_stride1 &&
        out.sram_stride2 == out.size1 * out.sram_stride1)
      out.size1 *= out.size2, out.size2 = 1;
    if (out.size1 == 1) out.dram_stride1 = out.sram_stride1 = 0;
    if (out.size2 == 1) out.dram_stride2 = out.sram_stride2 = 0;
    add(out);
  }
  void load(const Place& from, const View& to, int64_t rows, int64_t columns, int64_t bytes) {
    transfer<DmaLoad>(from, to, rows, columns, bytes);
  }
  void store(const View& from, const Place& to, int64_t rows, int64_t columns, int64_t bytes) {
    transfer<DmaStore>(to, from, rows, columns, bytes);
  }
  void load_bytes(Region region, int64_t from, int64_t to, int64_t bytes) {
    const int64_t piece = piece_bytes(spec_, bytes);
    for (int64_t at = 0; at < bytes; at += piece)
      load({region, from + at}, {.addr = to + at}, 1, 1, std::min(piece, bytes - at));
  }

  void cascade() {
    const Stripes stripes = stripes_of(network_, schedule_.homes, *group_);
    for (layer_ = group_->first; layer_ < group_->first + group_->count; ++layer_) load_parameters();
    const int64_t batch = network_.layers()[group_->first].out.n;
    for (int64_t n = 0; n < batch; ++n) {
      for (const Event& event : stripes.events) {
        const ir::Value& value = *event.value;
        const Map map = network_.map(value);
        const int64_t bytes = map.c * elem(value);
        if (event.kind == Event::Kind::load) {
          layer_ = reader_of(value);
          load(place(value, n, event.first), rows_view(value, n, event.first, event.count), event.count, map.w, bytes);
          continue;
        }
        layer_ = event.layer;
        if (event.kind == Event::Kind::store)
          store(rows_view(value, n, event.first, event.count), place(value, n, event.first), event.count, map.w, bytes);
        else
          compute_rows(n, event.first, event.count);
      }
    }
  }
  size_t reader_of(const ir::Value& value) const {
    for (size_t k = group_->first; k < group_->first + group_->count; ++k) {
      const std::vector<const ir::Value*>& inputs = network_.layers()[k].inputs;
      if (std::find(inputs.begin(), inputs.end(), &value) != inputs.end()) return k;
    }
    return group_->first;
  }

  void load_parameters() {
    const Layer& l = layer();
    const Parameters p = l.parameters();
    if (p.bytes == 0) return;
    const bool quantized = l.dtype == DType::i8;
    const int64_t begin = at(Use::parameters, layer_);
    if (l.form == Form::product) {
      const int64_t depth = l.product.in_c / l.product.groups;
      load_bytes(Region::weights, packer_.filters(l, l.product.out_c, depth), begin,
                 ops::taps_of(l.window) * depth * l.product.out_c * l.elem);
      if (l.product.biased)
        load_bytes(Region::weights, packer_.bias(l), begin + p.begin_second, l.product.out_c * kSumBytes);
      if (quantized) load_factors(packer_.product_factors(l), begin + p.begin_third, l.product.out_c, l.product.out_c);
    } else if (l.form == Form::pair) {
      if (l.row && !is_home(*l.row)) load(place(*l.row, 0, 0), {.addr = begin}, 1, 1, l.out.c * l.elem);
      if (quantized) load_bytes(Region::weights, packer_.pair_factors(l), begin + p.begin_second, 3 * kFactorBytes);
    } else if (l.form == Form::rows) {
      load_bytes(Region::weights, packer_.rows(l), begin, p.bytes);
    } else {
      load_bytes(Region::weights, packer_.table(l), begin, kTableBytes);
    }
  }

  // Factors of some filters, and behind the place of `most` those of an addend.
  void load_factors(int64_t from, int64_t to, int64_t filters, int64_t most) {
    load_bytes(Region::weights, from, to, filters * kFactorBytes);
    if (layer().addend())
      load_bytes(Region::weights, packer_.addend_factors(layer()), to + most * kFactorBytes, kAddendFactorBytes);
  }

  // With what the layer keeps while its group runs.
  Operands kept_operands() const {
    const Layer& l = layer();
    const Parameters p = l.parameters();
    const int64_t begin = p.bytes > 0 ? at(Use::parameters, layer_) : 0;
    Operands out{.parameters = begin, .second = begin + p.begin_second, .third = begin + p.begin_third};
    out.addend_factors = out.third + l.product.out_c * kFactorBytes;
    if (l.row) out.addend = is_home(*l.row) ? home_view(*l.row, 0, 0) : View{.addr = begin};
    return out;
  }
  void emit(const Piece& piece, const Operands& operands) {
    for (const Instruction& instruction : instructions_of(spec_, layer(), piece, operands)) add(instruction);
  }

  void compute_rows(int64_t n, int64_t first, int64_t count) {
    const Layer& l = layer();
    if (l.form == Form::view) return;
    const Span rows = l.rows_read(0, first, count);
    Operands operands = kept_operands();
    operands.in = rows_view(*l.inputs[0], n, rows.begin, rows.count);
    operands.out = rows_view(*l.output, n, first, count);
    if (l.inputs.size() > 1) operands.addend = rows_view(*l.inputs[1], n, first, count);
    emit({.rows = count,
          .columns = l.out.w,
          .filters = l.out.c,
          .channels = l.in.c,
          .in_rows = rows,
          .in_columns = columns_read(l, 0, l.out.w)},
         operands);
  }
  static Span columns_read(const Layer& l, int64_t first, int64_t count) {
    if (l.form == Form::product || l.form == Form::pool) return positions_read(l.window[1], first, count, l.in.w);
    return {first, count, 0};
  }

  // Which buffer holds what, so that only what differs is loaded.
  template <typename Key>
  struct Held {
    Key key;
    int64_t turn = -1;
    // Whether it must be loaded, into the next buffer.
    bool next(const Key& wanted) {
      if (turn >= 0 && key == wanted) return false;
      key = wanted;
      ++turn;
      return true;
    }
  };

  void product();
  void product_step(const ProductShape& shape, const TileBuffers& buffers, const Piece& piece);
  void pieces();
  void copies();
  void rearrange();
  void move(const Loops& loops, int64_t here, int64_t there);

  const npu::Spec& spec_;
  const Network& network_;
  const Schedule& schedule_;
  Packer& packer_;
  const Group* group_ = nullptr;
  size_t layer_ = 0, begin_ = 0;
  Expanded out_;
  Held<std::array<int64_t, 3>> weights_;
  Held<std::array<int64_t, 4>> input_;
  int64_t stored_ = 0, filters_at_ = 0, bias_at_ = 0, factors_at_ = 0;
};

// All pieces in the order of the tile; of each all channels, some after some.
void Expander::product() {
  const Layer& l = layer();
  const ProductShape s = shape_at_home(network_, schedule_.homes, l);
  const Tile& t = group_->tile;
  const TileBuffers buffers = buffers_of(s, t);
  const bool quantized = l.dtype == DType::i8;
  weights_ = {}, input_ = {}, stored_ = 0;
  const int64_t depth = s.groups == 1 ? t.channels : s.in_c / s.groups;
  if (l.form == Form::product) filters_at_ = packer_.filters(l, t.filters, depth);
  bias_at_ = s.biased ? packer_.bias(l) : 0;
  factors_at_ = quantized ? packer_.product_factors(l) : 0;
  const auto pieces = [&](int64_t n, int64_t row, int64_t column, int64_t filter) {
    const int64_t part = s.groups == 1 ? t.channels : s.in_c;
    const int64_t rows = std::min(t.rows, s.out_h - row), columns = std::min(t.columns, s.out_w - column);
    for (int64_t channel = 0; channel < s.in_c; channel += part) {
      product_step(s, buffers,
                   {.n = n,
                    .row = row,
                    .rows = rows,
                    .column = column,
                    .columns = columns,
                    .filter = filter,
                    .filters = std::min(t.filters, s.out_c - filter),
                    .channel = channel,
                    .channels = std::min(part, s.in_c - channel),
                    .first_part = channel == 0,
                    .last_part = channel + part >= s.in_c,
                    .in_rows = l.rows_read(0, row, rows),
                    .in_columns = columns_read(l, column, columns)});
    }
  };
  const auto places = [&](const auto& visit) {
    for (int64_t n = 0; n < s.batch; ++n) {
      for (int64_t row = 0; row < s.out_h; row += t.rows) {
        for (int64_t column = 0; column < s.out_w; column += t.columns) visit(n, row, column);
      }
    }
  };
  const auto filters = [&](const auto& visit) {
    for (int64_t filter = 0; filter < s.out_c; filter += t.filters) visit(filter);
  };
  if (t.filters_inside) {
    places([&](int64_t n, int64_t row, int64_t column) {
      filters([&](int64_t filter) { pieces(n, row, column, filter); });
    });
  } else {
    filters([&](int64_t filter) {
      places([&](int64_t n, int64_t row, int64_t column) { pieces(n, row, column, filter); });
    });
  }
}

void Expander::product_step(const ProductShape& s, const TileBuffers& buffers, const Piece& piece) {
  const Layer& l = layer();
  const Tile& t = group_->tile;
  Piece p = piece;
  const int64_t taps = ops::taps_of(s.window), group_filters = s.out_c / s.groups, group_channels = s.in_c / s.groups;
  const bool matrices = l.form == Form::matrices, quantized = l.dtype == DType::i8;
  Operands operands;
  if (buffers.weights > 0) {
    const bool load_weights = weights_.next({p.filter, p.channel, s.weights_differ ? p.n : 0});
    operands.parameters = at(Use::parameters, layer_, weights_.turn);
    operands.second = operands.parameters + buffers.bias;
    operands.third = operands.parameters + buffers.factors;
    operands.addend_factors = operands.third + t.filters * kFactorBytes;
    if (load_weights) {
      if (!matrices) {
        const int64_t before = p.filter * taps * (s.groups == 1 ? s.in_c : group_channels) +
                               (s.groups == 1 ? p.channel * taps * p.filters : 0);
        const int64_t count = taps * (s.groups == 1 ? p.channels : group_channels) * p.filters;
        load_bytes(Region::weights, filters_at_ + before * l.elem, operands.parameters, count * l.elem);
      } else if (!s.weights_stay) {
        const View to{operands.parameters, p.filters * l.elem, p.filters * l.elem};
        load(place(*l.inputs[1], 0, p.n * s.in_c, 0, p.filter), to, s.in_c, 1, p.filters * l.elem);
      }
      if (s.biased)
        load_bytes(Region::weights, bias_at_ + p.filter * kSumBytes, operands.second, p.filters * kSumBytes);
      if (quantized) load_factors(factors_at_ + p.filter * kFactorBytes, operands.third, p.filters, t.filters);
    }
  }
  // The channels that are read of each pixel, and the first of them.
  const int64_t channels = s.groups == 1 ? p.channels : p.filters / group_filters * group_channels,
                channel = s.groups == 1 ? p.channel : p.filter / group_filters * group_channels;
  const int64_t n_in = matrices ? 0 : p.n, row_in = matrices ? p.n * s.in_h + p.row : p.in_rows.begin;
  if (s.input_stays) {
    operands.in = home_view(*l.inputs[0], n_in, row_in, p.in_columns.begin, channel);
  } else {
    const bool load_input = input_.next({p.n, p.row, p.column, channel});
    const int64_t pixel = channels * l.elem;
    operands.in = {at(Use::input, layer_, input_.turn), p.in_columns.count * pixel, pixel};
    if (load_input)
      load(place(*l.inputs[0], n_in, row_in, p.in_columns.begin, channel), operands.in, p.in_rows.count,
           p.in_columns.count, pixel);
  }
  const int64_t n_out = matrices ? 0 : p.n, row_out = matrices ? p.n * s.out_h + p.row : p.row;
  const int64_t pixel = p.filters * l.elem;
  operands.out = s.output_stays ? home_view(*l.output, n_out, row_out, p.column, p.filter)
                                : View{at(Use::output, layer_, stored_), p.columns * pixel, pixel};
  if (l.addend() && p.last_part) {
    if (s.addend_stays) {
      operands.addend = home_view(*l.addend(), n_out, row_out, p.column, p.filter);
    } else {
      operands.addend = operands.out;
      load(place(*l.addend(), n_out, row_out, p.column, p.filter), operands.out, p.rows, p.columns, pixel);
    }
  }
  if (matrices && s.weights_stay) {
    const View b = home_view(*l.inputs[1], 0, p.n * s.in_c, 0, p.filter);
    operands.parameters = b.addr;
    operands.parameter_pitch = b.row_pitch;
  }
  if (buffers.sums > 0) operands.sums = at(Use::sums, layer_);
  p.channels = channels;
  emit(p, operands);
  if (!p.last_part) return;
  if (!s.output_stays)
    store(operands.out, place(*l.output, n_out, row_out, p.column, p.filter), p.rows, p.columns, pixel);
  ++stored_;
}

// Rows, columns and channels of what the vector engine computes.
void Expander::pieces() {
  const Layer& l = layer();
  const Tile& t = group_->tile;
  layer_ = group_->first;
  load_parameters();
  const bool to_home = is_home(*l.output), windowed = l.form == Form::pool;
  const auto count = static_cast<int64_t>(l.inputs.size());
  int64_t turn = 0;
  const auto step = [&](int64_t n, int64_t row, int64_t column, int64_t channel) {
    const int64_t rows = std::min(t.rows, l.out.h - row), columns = std::min(t.columns, l.out.w - column),
                  channels = std::min(t.channels, l.out.c - channel), pixel = channels * l.elem;
    const Span in_rows = l.rows_read(0, row, rows), in_columns = columns_read(l, column, columns);
    const auto source = [&](int64_t k) {
      const ir::Value& value = *l.inputs[static_cast<size_t>(k)];
      if (is_home(value)) return home_view(value, n, in_rows.begin, in_columns.begin, channel);
      const View out{at(Use::input, layer_, turn * count + k), in_columns.count * pixel, pixel};
      load(place(value, n, in_rows.begin, in_columns.begin, channel), out, in_rows.count, in_columns.count, pixel);
      return out;
    };
    Operands operands = kept_operands();
    operands.in = source(0);
    if (count > 1) operands.addend = source(1);
    operands.out = to_home ? home_view(*l.output, n, row, column, channel)
                           : View{at(Use::output, layer_, turn), columns * pixel, pixel};
    emit({.rows = rows,
          .columns = columns,
          .filters = channels,
          .channels = channels,
          .in_rows = in_rows,
          .in_columns = in_columns},
         operands);
    if (!to_home) store(operands.out, place(*l.output, n, row, column, channel), rows, columns, pixel);
    ++turn;
  };
  HETNN_ASSERT(!windowed || t.columns == l.out.w, "windows are not cut along their columns");
  for (int64_t n = 0; n < l.out.n; ++n) {
    for (int64_t row = 0; row < l.out.h; row += t.rows) {
      for (int64_t column = 0; column < l.out.w; column += t.columns) {
        for (int64_t channel = 0; channel < l.out.c; channel += t.channels) step(n, row, column, channel);
      }
    }
  }
}

// Copies between DRAM and the scratchpad in one transfer, between two places of DRAM by way of the scratchpad, within
// the scratchpad by the vector engine.
void Expander::copies() {
  const Layer& l = layer();
  const bool to_home = is_home(*l.output);
  int64_t turn = 0;
  for (const Copy& copy : copies_of(l, network_)) {
    const bool from_home = is_home(*copy.from);
    Place from = place(*copy.from, 0, 0), to = place(*l.output, 0, 0);
    from.offset_bytes += copy.from_offset, from.row_pitch = copy.from_pitch;
    to.offset_bytes += copy.to_offset, to.row_pitch = copy.to_pitch;
    const View here{home(*copy.from).offset_bytes + network_.part(*copy.from).offset_bytes + copy.from_offset,
                    copy.from_pitch},
        there{home(*l.output).offset_bytes + network_.part(*l.output).offset_bytes + copy.to_offset, copy.to_pitch};
    if (from_home && to_home) {
      move({{copy.runs, copy.run_bytes / l.elem}, {copy.from_pitch, l.elem}, {copy.to_pitch, l.elem}}, here.addr,
           there.addr);
    } else if (from_home) {
      store(here, to, copy.runs, 1, copy.run_bytes);
    } else if (to_home) {
      load(from, there, copy.runs, 1, copy.run_bytes);
    } else {
      const Buffer& buffer = *group_->find(Use::moved, layer_);
      const int64_t most = buffer.bytes / copy.run_bytes;
      for (int64_t first = 0; first < copy.runs; first += most, ++turn) {
        const int64_t runs = std::min(most, copy.runs - first);
        const View between{at(Use::moved, layer_, turn), copy.run_bytes};
        Place begin = from, end = to;
        begin.offset_bytes += first * copy.from_pitch;
        end.offset_bytes += first * copy.to_pitch;
        load(begin, between, runs, 1, copy.run_bytes);
        store(between, end, runs, 1, copy.run_bytes);
      }
    }
  }
}

void Expander::move(const Loops& loops, int64_t here, int64_t there) {
  std::vector<int64_t> extents, a, b;
  for (size_t k = 0; k < loops.extents.size(); ++k) {
    if (loops.extents[k] == 1) continue;
    extents.push_back(loops.extents[k]);
    a.push_back(loops.from[k]);
    b.push_back(loops.to[k]);
  }
  while (extents.size() < 3) {
    extents.insert(extents.begin(), 1);
    a.insert(a.begin(), 0);
    b.insert(b.begin(), 0);
  }
  const size_t inner = extents.size() - 3;
  const auto outer = static_cast<std::ptrdiff_t>(inner);
  ops::nest<2>(std::span(extents).first(inner),
               {ops::Strides(a.begin(), a.begin() + outer), ops::Strides(b.begin(), b.begin() + outer)},
               [&](int64_t read, int64_t write) {
                 add(npu::Move{.elem_bytes = layer().elem,
                               .size0 = extents[inner + 2],
                               .size1 = extents[inner + 1],
                               .size2 = extents[inner],
                               .in_addr = here + read,
                               .in_stride0 = a[inner + 2],
                               .in_stride1 = a[inner + 1],
                               .in_stride2 = a[inner],
                               .out_addr = there + write,
                               .out_stride0 = b[inner + 2],
                               .out_stride1 = b[inner + 1],
                               .out_stride2 = b[inner]});
               });
}

// As many elements of the axis that is cut as the group's buffers hold; a step between two of them, the first from and
// the last to where the values lie.
void Expander::rearrange() {
  const Layer& l = layer();
  const bool from_home = is_home(*l.inputs[0]), to_home = is_home(*l.output);
  const Slabs slabs = slabs_of(l, network_.bindings());
  const int64_t tile = std::min(group_->tile.rows, slabs.count);
  int64_t turn = 0;
  for (int64_t first = 0; first < slabs.count; first += tile, ++turn) {
    const int64_t count = std::min(tile, slabs.count - first), in_begin = first * slabs.in.run_bytes,
                  out_begin = first * slabs.out.run_bytes, in_run = count * slabs.in.run_bytes,
                  out_run = count * slabs.out.run_bytes;
    const std::vector<Loops> steps = moves_of(l, network_.bindings(), slabs.count > 1 ? count : 0, from_home, to_home);
    const int64_t final = to_home ? home(*l.output).offset_bytes + out_begin : -1;
    int64_t here = from_home ? home(*l.inputs[0]).offset_bytes + in_begin : -1;
    const auto between = [&](int64_t which) { return at(Use::moved, layer_, 2 * turn + which); };
    if (!from_home) {
      Place from = place(*l.inputs[0], 0, 0);
      from.offset_bytes += in_begin, from.row_pitch = slabs.in.pitch;
      here = steps.empty() && to_home ? final : between(0);
      if (slabs.in.runs == 1)
        load_bytes(from.region, from.offset_bytes, here, in_run);
      else
        load(from, {.addr = here, .row_pitch = in_run}, slabs.in.runs, 1, in_run);
    }
    for (size_t k = 0; k < steps.size(); ++k) {
      const int64_t there = k + 1 == steps.size() && to_home ? final : between(k % 2 == 0 ? 1 : 0);
      move(steps[k], here, there);
      here = there;
    }
    if (!to_home) {
      Place to = place(*l.output, 0, 0);
      to.offset_bytes += out_begin, to.row_pitch = slabs.out.pitch;
      store({.addr = here, .row_pitch = out_run}, to, slabs.out.runs, 1, out_run);
    } else if (here != final) {
      move({{out_run / l.elem}, {l.elem}, {l.elem}}, here, final);
    }
  }
}

}  // namespace

Expanded expand(const npu::Spec& spec, const Network& network, const Schedule& schedule, Packer& packer) {
  return Expander(spec, network, schedule, packer).run();
}

}  // namespace hetnn::backends::scheduling
