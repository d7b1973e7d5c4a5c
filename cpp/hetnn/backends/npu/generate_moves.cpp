// Data movement: concat and slice as runs between strides, reshape and permute through the move instruction.
#include <algorithm>

#include "hetnn/backends/npu/generate.h"
#include "hetnn/base/error.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::backends::npu {

namespace {

// A logical axis of a value of that rank, in the order in which it is stored.
int stored_axis(int axis, int rank) {
  constexpr int kNhwc[] = {0, 3, 1, 2};
  return rank == 4 ? kNhwc[axis] : axis;
}

int64_t product(const std::vector<int64_t>& shape, size_t first, size_t last) {
  int64_t out = 1;
  for (size_t k = first; k < last; ++k) out *= shape[k];
  return out;
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

void Generator::concat(const ir::Node& node) {
  keeps_scale(node);
  const std::vector<int64_t> out = stored_shape(*node.output());
  const int rank = node.output()->rank();
  const auto axis = static_cast<size_t>(stored_axis(ops::axis_of(node.call(), node.integer("axis"), rank), rank));
  const int64_t outer = product(out, 0, axis), inner = product(out, axis + 1, out.size()) * elem_,
                out_run = out[axis] * inner;
  const Place to = place_of(*node.output());
  int64_t at = 0;
  for (const ir::Value* input : node.inputs()) {
    const int64_t run = stored_shape(*input)[axis] * inner;
    if (run == 0) continue;
    const Place from = place_of(*input);
    const int64_t tile = std::min(outer, spec_.scratchpad().bytes / std::max<int64_t>(run, 1));
    if (tile < 1) does_not_fit(node, run);
    for (int64_t first = 0; first < outer; first += tile) {
      const int64_t runs = std::min(tile, outer - first);
      load({from.region, from.offset_bytes + first * run}, 0, runs * run);
      store(0, {to.region, to.offset_bytes + first * out_run + at}, {.size0 = run, .size1 = runs, .stride1 = out_run});
    }
    at += run;
  }
}

void Generator::slice(const ir::Node& node) {
  keeps_scale(node);
  if (node.integer("step") != Dim(1))
    throw Unsupported(text(ir::describe(node), ": the NPU slices with step 1; got ", node.integer("step"), "."));
  const std::vector<int64_t> in = stored_shape(*node.input(0)), out = stored_shape(*node.output());
  const int rank = node.output()->rank();
  const auto axis = static_cast<size_t>(stored_axis(ops::axis_of(node.call(), node.integer("axis"), rank), rank));
  int64_t begin = node.integer("start").evaluate(bindings_);
  begin = std::clamp<int64_t>(begin < 0 ? begin + in[axis] : begin, 0, in[axis]);
  const int64_t outer = product(out, 0, axis), inner = product(out, axis + 1, out.size()) * elem_;
  const int64_t run = out[axis] * inner, in_run = in[axis] * inner;
  const Place from = place_of(*node.input(0)), to = place_of(*node.output());
  const int64_t tile = std::min(outer, spec_.scratchpad().bytes / std::max<int64_t>(run, 1));
  if (tile < 1) does_not_fit(node, run);
  for (int64_t first = 0; first < outer; first += tile) {
    const int64_t runs = std::min(tile, outer - first);
    load({from.region, from.offset_bytes + first * in_run + begin * inner}, 0,
         {.size0 = run, .size1 = runs, .stride1 = in_run});
    store(0, {to.region, to.offset_bytes + first * run}, runs * run);
  }
}

// As much of the value in the scratchpad as fits, then loops over the logical axes of one side with the other side's
// strides. A reshape between two feature maps goes by way of the row-major order. The value is cut along its first axis
// where that stays the first; it is outermost in every layout.
void Generator::rearrange(const ir::Node& node) {
  keeps_scale(node);
  const std::vector<int64_t> in = evaluate(node.input(0)->shape(), bindings_),
                             out = evaluate(node.output()->shape(), bindings_);
  const int64_t bytes = product(in, 0, in.size()) * elem_;
  if (bytes == 0) return;
  const bool rows_stay = !in.empty() && !out.empty() && in[0] == out[0] &&
                         (!node.attrs().contains("perm") || ops::per_axis(node.call(), "perm", in.size())[0] == 0);
  const int64_t rows = rows_stay ? in[0] : 1, row_bytes = bytes / rows;
  const int64_t tile = std::min(rows, spec_.scratchpad().bytes / (2 * row_bytes));
  for (int64_t first = 0; first < rows; first += std::max<int64_t>(tile, 1))
    rearrange_rows(node, rows_stay, first, rows_stay ? std::min(std::max<int64_t>(tile, 1), rows - first) : 0);
}

void Generator::move(const Loops& loops, int64_t here, int64_t there) {
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
                 add(hetnn::npu::Move{.elem_bytes = elem_,
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

void Generator::rearrange_rows(const ir::Node& node, bool part, int64_t first, int64_t count) {
  const ir::Value &x = *node.input(0), &y = *node.output();
  std::vector<int64_t> in = evaluate(x.shape(), bindings_), out = evaluate(y.shape(), bindings_);
  if (part) in[0] = out[0] = count;
  const int64_t bytes = product(in, 0, in.size()) * elem_;
  std::vector<Loops> steps;
  if (node.attrs().contains("perm")) {
    const std::vector<int64_t> perm = ops::per_axis(node.call(), "perm", in.size()),
                               strides = logical_strides(in, layout_of(x), elem_);
    Loops loops{out, {}, logical_strides(out, layout_of(y), elem_)};
    for (int64_t axis : perm) loops.from.push_back(strides[static_cast<size_t>(axis)]);
    steps.push_back(std::move(loops));
  } else if (in != out) {
    if (layout_of(x) == Layout::nhwc)
      steps.push_back({in, logical_strides(in, Layout::nhwc, elem_), logical_strides(in, Layout::plain, elem_)});
    if (layout_of(y) == Layout::nhwc)
      steps.push_back({out, logical_strides(out, Layout::plain, elem_), logical_strides(out, Layout::nhwc, elem_)});
  }
  // Steps that move nothing: all axes of more than one element keep their place.
  std::erase_if(steps, [](const Loops& loops) {
    for (size_t k = 0; k < loops.extents.size(); ++k) {
      if (loops.extents[k] > 1 && loops.from[k] != loops.to[k]) return false;
    }
    return true;
  });
  Place from = place_of(x), to = place_of(y);
  if (part) {
    from.offset_bytes += first * (bytes / count);
    to.offset_bytes += first * (bytes / count);
  }
  if (steps.empty()) {  // a plain copy, in pieces
    const int64_t tile = spec_.scratchpad().bytes / kAlignment * kAlignment;
    if (tile == 0) does_not_fit(node, kAlignment);
    for (int64_t at = 0; at < bytes; at += tile) {
      const int64_t piece = std::min(tile, bytes - at);
      load({from.region, from.offset_bytes + at}, 0, piece);
      store(0, {to.region, to.offset_bytes + at}, piece);
    }
    return;
  }
  if (bytes * 2 > spec_.scratchpad().bytes) does_not_fit(node, bytes * 2);
  load(from, 0, bytes);
  int64_t here = 0, there = bytes;
  for (const Loops& loops : steps) {
    move(loops, here, there);
    std::swap(here, there);
  }
  store(here, to, bytes);
}

}  // namespace hetnn::backends::npu
