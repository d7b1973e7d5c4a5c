// Movement as runs between strides, and as loops over the axes of one side with the other side's strides.
#include "hetnn/backends/npu/rearrange.h"

#include <algorithm>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/resample.h"

namespace hetnn::backends::scheduling {
namespace {

int64_t product(const std::vector<int64_t>& shape, size_t first, size_t last) {
  int64_t out = 1;
  for (size_t k = first; k < last; ++k) out *= shape[k];
  return out;
}

// A logical axis of a value of that rank, in the order in which it is stored.
int stored_axis(int axis, int rank) {
  constexpr int kNhwc[] = {0, 3, 1, 2};
  return rank == 4 ? kNhwc[axis] : axis;
}

std::vector<int64_t> stored_shape(const ir::Value& value, const Bindings& bindings) {
  std::vector<int64_t> shape = evaluate(value.shape(), bindings);
  if (shape.size() == 4) shape = {shape[0], shape[2], shape[3], shape[1]};
  return shape;
}

int axis_of(const Layer& layer) {
  const ir::Node& node = layer.node();
  const int rank = node.output()->rank();
  return stored_axis(ops::axis_of(node.call(), node.integer("axis"), rank), rank);
}

// Strides of a value's logical axes in its stored order, in bytes.
std::vector<int64_t> logical_strides(const std::vector<int64_t>& shape, Layout layout, int64_t elem_bytes) {
  if (layout == Layout::plain) {
    std::vector<int64_t> out = ops::strides_of(shape);
    for (int64_t& stride : out) stride *= elem_bytes;
    return out;
  }
  const int64_t c = shape[1], row = shape[3] * c * elem_bytes;
  return {shape[2] * row, elem_bytes, row, c * elem_bytes};
}

}  // namespace

bool along_channels(const Layer& layer) {
  const ops::Primitive primitive = layer.node().op().primitive;
  return (primitive == ops::Primitive::concat || primitive == ops::Primitive::slice) &&
         axis_of(layer) == layer.node().output()->rank() - 1;
}

int64_t slice_begin(const Layer& layer, const Bindings& bindings) {
  const int64_t size = stored_shape(*layer.inputs[0], bindings)[static_cast<size_t>(axis_of(layer))];
  const int64_t begin = layer.node().integer("start").evaluate(bindings);
  return std::clamp<int64_t>(begin < 0 ? begin + size : begin, 0, size);
}

std::vector<Copy> copies_of(const Layer& layer, const Network& network) {
  const Bindings& bindings = network.bindings();
  const auto axis = static_cast<size_t>(axis_of(layer));
  const std::vector<int64_t> out = stored_shape(*layer.output, bindings);
  const int64_t outer = product(out, 0, axis), inner = product(out, axis + 1, out.size()) * layer.elem;
  const bool channels = along_channels(layer);
  // Pixels may lie apart; along all other axes values are dense.
  const auto pitch = [&](const ir::Value& value, int64_t size) {
    return channels ? network.frame(value).pixel_bytes : size * inner;
  };
  // What was written into its place.
  const auto lies_at = [](const Part& part, const Part& whole, int64_t offset) {
    return part.frame == whole.frame && part.offset_bytes == whole.offset_bytes + offset;
  };
  const int64_t to_pitch = pitch(*layer.output, out[axis]);
  std::vector<Copy> copies;
  int64_t at = 0;
  for (const ir::Value* input : layer.inputs) {
    const int64_t size = stored_shape(*input, bindings)[axis];
    if (layer.form == Form::slice) {
      copies.push_back(
          {input, outer, out[axis] * inner, slice_begin(layer, bindings) * inner, pitch(*input, size), 0, to_pitch});
    } else if (size * outer > 0 && !lies_at(network.part(*input), network.part(*layer.output), at)) {
      copies.push_back({input, outer, size * inner, 0, pitch(*input, size), at, to_pitch});
    }
    at += size * inner;
  }
  return copies;
}

std::optional<Repeats> repeats_of(const ir::Node& node, const Bindings& bindings) {
  if (!node.attrs().contains("size")) return std::nullopt;
  const std::vector<int64_t> in = evaluate(node.input(0)->shape(), bindings),
                             out = evaluate(node.output()->shape(), bindings);
  const std::vector<double>& scales = node.call().reals("scales");
  Repeats factors{};
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t from = in[2 + axis], to = out[2 + axis];
    factors[axis] = from > 0 && to % from == 0 ? to / from : 0;
    const std::vector<int64_t> places = ops::nearest_before(from, to, scales.empty() ? 0 : scales[axis]);
    for (int64_t k = 0; k < to && factors[axis] > 0; ++k) {
      if (places[static_cast<size_t>(k)] != k / factors[axis]) factors[axis] = 0;
    }
  }
  return factors;
}

std::vector<Loops> moves_of(const Layer& layer, const Bindings& bindings, int64_t count, bool in_whole,
                            bool out_whole) {
  const ir::Node& node = layer.node();
  const ir::Value &x = *node.input(0), &y = *node.output();
  std::vector<int64_t> in = evaluate(x.shape(), bindings), out = evaluate(y.shape(), bindings);
  std::vector<int64_t> in_lies = in, out_lies = out;
  const std::optional<Repeats> repeats = repeats_of(node, bindings);
  if (count > 0) {
    const Slabs slabs = slabs_of(layer, bindings);
    const int64_t factor = in[slabs.in_axis] > 0 ? out[slabs.out_axis] / in[slabs.in_axis] : 1;
    in[slabs.in_axis] = count;
    out[slabs.out_axis] = count * factor;
    if (!in_whole) in_lies = in;
    if (!out_whole) out_lies = out;
  }
  std::vector<Loops> steps;
  if (node.attrs().contains("perm")) {
    const std::vector<int64_t> perm = ops::per_axis(node.call(), "perm", in.size()),
                               strides = logical_strides(in_lies, layout_of(x), layer.elem);
    Loops loops{out, {}, logical_strides(out_lies, layout_of(y), layer.elem)};
    for (int64_t axis : perm) loops.from.push_back(strides[static_cast<size_t>(axis)]);
    steps.push_back(std::move(loops));
  } else if (repeats) {
    // Every pixel goes to a block of rows and columns.
    const std::vector<int64_t> from = logical_strides(in_lies, layout_of(x), layer.elem),
                               to = logical_strides(out_lies, layout_of(y), layer.elem);
    const auto [rows, columns] = *repeats;
    steps.push_back({{in[0], in[2], rows, in[3], columns, in[1]},
                     {from[0], from[2], 0, from[3], 0, from[1]},
                     {to[0], to[2] * rows, to[2], to[3] * columns, to[3], to[1]}});
  } else if (in != out) {
    if (layout_of(x) == Layout::nhwc)
      steps.push_back(
          {in, logical_strides(in, Layout::nhwc, layer.elem), logical_strides(in, Layout::plain, layer.elem)});
    if (layout_of(y) == Layout::nhwc)
      steps.push_back(
          {out, logical_strides(out, Layout::plain, layer.elem), logical_strides(out, Layout::nhwc, layer.elem)});
  }
  // Steps that move nothing: all axes of more than one element keep their place.
  std::erase_if(steps, [](const Loops& loops) {
    for (size_t k = 0; k < loops.extents.size(); ++k) {
      if (loops.extents[k] > 1 && loops.from[k] != loops.to[k]) return false;
    }
    return true;
  });
  return steps;
}

Slabs slabs_of(const Layer& layer, const Bindings& bindings) {
  const ir::Node& node = layer.node();
  const ir::Value &x = *node.input(0), &y = *node.output();
  const std::vector<int64_t> in = evaluate(x.shape(), bindings), out = evaluate(y.shape(), bindings);
  Slabs whole;
  whole.in.run_bytes = product(in, 0, in.size()) * layer.elem;
  whole.out.run_bytes = product(out, 0, out.size()) * layer.elem;
  if (in.empty() || out.empty() || whole.out.run_bytes == 0) return whole;
  const auto cut = [&](size_t in_axis, size_t out_axis) {
    const int64_t count = in[in_axis];
    const auto slab = [&](const std::vector<int64_t>& shape, const ir::Value& value, size_t axis, int64_t bytes) {
      const int64_t pitch = logical_strides(shape, layout_of(value), layer.elem)[axis] * shape[axis];
      return Slab{bytes / pitch, pitch / count, pitch};
    };
    return Slabs{count, in_axis, out_axis, slab(in, x, in_axis, whole.in.run_bytes),
                 slab(out, y, out_axis, whole.out.run_bytes)};
  };
  if (repeats_of(node, bindings)) return in[0] >= in[2] ? cut(0, 0) : cut(2, 2);
  if (!node.attrs().contains("perm")) return in[0] == out[0] ? cut(0, 0) : whole;
  // An axis that makes many pieces, so that some fit, and of these the one with the longest runs.
  constexpr int64_t kMany = 16;
  const std::vector<int64_t> perm = ops::per_axis(node.call(), "perm", in.size());
  Slabs best = whole;
  for (size_t axis = 0; axis < out.size(); ++axis) {
    if (out[axis] == 1) continue;
    const Slabs slabs = cut(static_cast<size_t>(perm[axis]), axis);
    const auto better = [&](const Slabs& a, const Slabs& b) {
      const int64_t many_a = std::min(a.count, kMany), many_b = std::min(b.count, kMany);
      if (many_a != many_b) return many_a > many_b;
      return std::min(a.in.run_bytes, a.out.run_bytes) > std::min(b.in.run_bytes, b.out.run_bytes);
    };
    if (best.count == 1 || better(slabs, best)) best = slabs;
  }
  return best;
}

}  // namespace hetnn::backends::scheduling
