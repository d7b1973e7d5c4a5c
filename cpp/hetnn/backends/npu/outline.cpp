// What a network is for its schedule: sizes, and which memory each layer uses.
#include "hetnn/backends/npu/network.h"
#include "hetnn/backends/npu/rearrange.h"

namespace hetnn::backends::scheduling {
namespace {

class Outline {
 public:
  explicit Outline(const Network& network) : network_(network) {}

  std::vector<int64_t> take() {
    for (const Storage& storage : network_.storages())
      put(storage.bytes, storage.is_constant, storage.is_port, storage.first, storage.last);
    for (const Frame& frame : network_.frames()) {
      put(frame.storage, frame.pixel_bytes);
      put_map(frame.map);
    }
    for (const Layer& layer : network_.layers()) put_layer(layer);
    return std::move(out_);
  }

 private:
  template <typename... Figures>
  void put(Figures... figures) {
    (out_.push_back(static_cast<int64_t>(figures)), ...);
  }
  void put_map(const Map& map) { put(map.n, map.h, map.w, map.c); }
  void put_list(const std::vector<int64_t>& figures) {
    put(figures.size());
    out_.insert(out_.end(), figures.begin(), figures.end());
  }
  void put_value(const ir::Value& value) {
    const Part& part = network_.part(value);
    put(part.frame, part.offset_bytes);
    put_map(network_.map(value));
  }

  void put_layer(const Layer& layer) {
    put(layer.form, layer.form == Form::rows ? layer.node().op().primitive : ops::Primitive::none, layer.dtype,
        layer.streams, layer.op ? static_cast<int>(*layer.op) : -1, layer.epilogue.act, layer.row != nullptr,
        layer.inputs.size());
    for (const ir::Value* input : layer.inputs) put_value(*input);
    put_value(*layer.output);
    put_map(layer.in);
    put_map(layer.out);
    if (layer.row) put_value(*layer.row);
    for (const ops::WindowAxis& axis : layer.window)
      put(axis.kernel, axis.stride, axis.dilation, axis.before, axis.after);
    put_list(figures_of(layer.product));
    if (layer.form == Form::concat || layer.form == Form::slice) {
      for (const Copy& copy : copies_of(layer, network_))
        put(copy.runs, copy.run_bytes, copy.from_offset, copy.from_pitch, copy.to_offset, copy.to_pitch);
    } else if (layer.form == Form::rearrange) {
      const Slabs slabs = slabs_of(layer, network_.bindings());
      for (const int64_t figure :
           {slabs.count, slabs.in.run_bytes, slabs.in.pitch, slabs.out.run_bytes, slabs.out.pitch})
        put(figure);
      for (const Loops& loops : moves_of(layer, network_.bindings())) {
        put_list(loops.extents);
        put_list(loops.from);
        put_list(loops.to);
      }
    }
  }

  const Network& network_;
  std::vector<int64_t> out_;
};

}  // namespace

std::vector<int64_t> Network::outline() const { return Outline(*this).take(); }

}  // namespace hetnn::backends::scheduling
