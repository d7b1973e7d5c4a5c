// What the convolutions of f32 compute and fetch.
#include <algorithm>

#include "hetnn/kernels/conv/conv.h"
#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/implicit.h"
#include "hetnn/kernels/conv/integer_winograd.h"
#include "hetnn/kernels/conv/planes.h"
#include "hetnn/kernels/conv/sliding.h"
#include "hetnn/kernels/conv/winograd.h"
#include "hetnn/kernels/conv/winograd_transform.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

constexpr int64_t kFloat_bytes = 4;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

double image_bytes(const WindowGeometry& g, int64_t elem_bytes = kFloat_bytes) {
  return static_cast<double>(g.batch * g.height * g.width * g.channels * elem_bytes);
}
double result_bytes(const WindowGeometry& g, int64_t elem_bytes = kFloat_bytes) {
  return static_cast<double>(g.out_pixels() * g.out_channels * elem_bytes);
}

// Every way reads the image and writes the result. A network's weights come from memory.
Work moving(const WindowGeometry& g, int64_t weight_bytes, const Machine& machine, int64_t elem_bytes = kFloat_bytes) {
  const double maps = image_bytes(g, elem_bytes) + result_bytes(g, elem_bytes);
  Work work = Work().fetch(maps, maps, machine);
  work.bytes[kMemory] += static_cast<double>(weight_bytes);
  return work;
}

// A plain image is copied first, by all threads.
void copy_image(Work& work, const WindowGeometry& g, const Machine& machine) {
  work.fetch(image_bytes(g), image_bytes(g), machine);
  ++work.barriers;
}

Work product_of_pixels(const WindowGeometry& g, const PanelShape& shape, const Machine& machine) {
  Work work = moving(g, shape.packed_bytes(), machine);
  const Work product = product_work(shape.groups, shape.rows, shape.taps, shape.k, shape.cols);
  work.multiplies = product.multiplies;
  work.grains = product.grains;
  return work;
}

bool is_turned(const TensorView& x) { return x.layout != Layout::nhwc && x.dims[1] > 1; }

}  // namespace

Work direct_work_of(const KernelCall& call, const WindowGeometry& g, const Machine& machine) {
  Work work = product_of_pixels(g, direct_shape(g), machine);
  if (is_turned(call.inputs[0])) copy_image(work, g, machine);
  return work;
}

Work direct_conv_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  return direct_work_of(call, conv_geometry(call), machine);
}

Work few_channels_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  const WindowGeometry g = conv_geometry(call);
  Work work = product_of_pixels(g, few_channels_shape(g), machine);
  copy_image(work, g, machine);
  return work;
}

Work planes_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  // Turning rows of pixels into pixels takes a tenth of the time; where windows are further apart, columns of a row are
  // parted first, and what a network's first layer reads and writes is waited for more.
  constexpr double kTurned = 1.1, kParted = 1.6;
  const WindowGeometry g = conv_geometry(call);
  Work work = moving(g, direct_shape(g).packed_bytes(), machine);
  work.multiplies = (g.columns.stride > 1 ? kParted : kTurned) *
                    product_steps(g.rows.kernel, g.columns.kernel * g.channels) *
                    static_cast<double>(g.batch * g.out_height * ceil_div(g.out_width, kPanel) * g.out_channels);
  work.grains = g.batch * g.out_height;
  return work;
}

Work sliding_work(const KernelCall& call, const Machine& machine, int threads) {
  // In the time of so many multiply-adds of vectors one is loaded and multiplied by each tap, and a vector of results
  // begins and ends. Channels of a group are turned into their places besides, of a row's windows at once; elsewhere a
  // pixel that is left over in a row has fewer sums beside it, and takes longer to begin.
  constexpr double kLoaded = 1.5, kResult = 2, kInRow[] = {1, 1.7}, kInRowResult = 20;
  constexpr double kTurned = 2, kAlone = 2, kAloneResult = 16;
  const WindowGeometry g = conv_geometry(call);
  const PanelShape shape = sliding_shape(g);
  Work work = moving(g, shape.packed_bytes(), machine);
  const auto products = static_cast<double>(g.taps() * shape.k), panels = static_cast<double>(shape.panels_per_group());
  if (g.depthwise()) {
    work.multiplies = panels * static_cast<double>(g.out_pixels()) * (products * kLoaded + kResult);
  } else if (const int64_t step = grouped_row_step(g); step > 0) {
    work.multiplies = panels * static_cast<double>(g.out_pixels()) * (products * kInRow[step - 1] + kInRowResult);
  } else {
    const int64_t together = grouped_pixels_together(g);
    work.multiplies = panels * static_cast<double>(g.batch * g.out_height) *
                      (static_cast<double>(together) * (products * kTurned + kResult) +
                       static_cast<double>(g.out_width - together) * (products * kAlone + kAloneResult));
  }
  const ThreadGrid grid = sliding_grid(g, threads);
  work.grains = (grid.row_parts > 1 || threads == 1 ? g.batch * g.out_height : 1) *
                (grid.col_parts > 1 ? shape.panels_per_group() : 1);
  if (is_turned(call.inputs[0])) copy_image(work, g, machine);
  return work;
}

template <int64_t kSide>
Work winograd_work(const KernelCall& call, const Machine& machine, int threads) {
  // In the time of so many multiply-adds of vectors a tile of inputs is transformed for 16 channels, where there are no
  // more and where there are, and one of outputs back; a line of either, besides what it takes for any number of
  // channels. Measured: benchmarks/cpp/kernels_conv.cpp.
  constexpr double kInput = 300, kInputOfMany = 1250, kOutput = 100, kLine = 30, kAnyLine = 190;
  // The same of tiles of 2x2 outputs, and of 16 columns of a channel's weights.
  constexpr double kSmallInput = 300, kSmallOutput = 60, kWeights = 64;
  const WindowGeometry g = conv_geometry(call);
  const WinogradTiles tiles(g, kSide);
  const WinogradSplit split = winograd_split(g, kSide, machine);
  Work work = moving(g, split.weight_bytes, machine);
  // What one thread fetched from memory, the others find nearer.
  const int64_t others = split.shared ? 0 : std::min<int64_t>(threads, tiles.count()) - 1;
  work.bytes[kThirdLevel] += static_cast<double>(others * split.weight_bytes);
  work.multiplies =
      static_cast<double>(tiles.points()) * product_multiplies(tiles.count(), 1, g.channels, g.out_channels);
  const double inputs = vectors_of(g.channels), outputs = vectors_of(g.out_channels);
  double tile = (g.channels > kPanel ? kInputOfMany : kInput) * inputs + kOutput * outputs;
  if (tiles.are_lines()) tile = kAnyLine + kLine * (inputs + outputs);
  if (!tiles.store_weights()) tile = kSmallInput * inputs + kSmallOutput * outputs;
  work.apart = static_cast<double>(tiles.count()) * tile;
  const int64_t blocks = ceil_div(tiles.count(), split.block_tiles), wide = ceil_div(g.out_channels, 2 * kPanel);
  work.grains = !split.shared ? tiles.count() : tiles.store_weights() ? tiles.points() * wide : wide;
  if (split.shared) work.barriers = static_cast<int>(2 * blocks);
  if (!tiles.store_weights()) {
    const int64_t times = split.shared ? blocks : std::max(blocks, others + 1);
    work.apart += kWeights * static_cast<double>(times * g.channels) * outputs;
  }
  if (is_turned(call.inputs[0])) copy_image(work, g, machine);
  return work;
}

template Work winograd_work<4>(const KernelCall& call, const Machine& machine, int threads);
template Work winograd_work<2>(const KernelCall& call, const Machine& machine, int threads);

Work integer_conv_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  // An instruction multiplies four bytes in each lane.
  constexpr int64_t kQuad = 4;
  const WindowGeometry g = conv_geometry(call);
  const int64_t quads = ceil_div(g.channels / g.groups, kQuad), cols = g.out_channels / g.groups;
  Work work = moving(g, g.out_channels * g.taps() * quads * kQuad, machine, 1);
  const Work product = product_work(g.groups, g.out_pixels(), g.taps(), quads, cols);
  work.multiplies = product.multiplies;
  work.grains = product.grains;
  return work;
}

Work integer_winograd_work(const KernelCall& call, const Machine& machine, int /*threads*/) {
  // Pairs of 16 bits in a lane; the transforms of 32 channels of inputs, and of 16 of outputs back.
  constexpr int64_t kPair = 2;
  constexpr double kInput = 200, kOutput = 240;
  const WindowGeometry g = conv_geometry(call);
  const int64_t tiles = WinogradTiles(g, kWinogradOutput).count();
  Work work = moving(g, integer_winograd_bytes(g), machine, 1);
  work.multiplies = kWinogradPoints * product_multiplies(tiles, 1, ceil_div(g.channels, kPair), g.out_channels);
  work.apart = static_cast<double>(tiles) * (kInput * static_cast<double>(ceil_div(g.channels, kPair * kPanel)) +
                                             kOutput * static_cast<double>(ceil_div(g.out_channels, kPanel)));
  work.grains = tiles;
  return work;
}

Work phases_work(const KernelCall& call, const WindowGeometry& g, const Machine& machine) {
  // Of each line a product by itself, which takes so long to begin.
  constexpr double kLine = 64;
  const int64_t rows = ceil_div(g.out_width, g.columns.stride), cols = g.out_channels / g.groups;
  const int64_t phases = g.rows.stride * g.columns.stride;
  const PanelShape shape = direct_shape(g);
  Work work = moving(g, shape.packed_bytes(), machine);
  const double lines = static_cast<double>(g.batch * ceil_div(g.out_height, g.rows.stride) * phases);
  work.multiplies = lines * (kLine + static_cast<double>(g.groups) *
                                         product_multiplies(rows, ceil_div(g.taps(), phases), shape.k, cols));
  work.grains = g.batch * g.out_height;
  if (is_turned(call.inputs[0])) copy_image(work, g, machine);
  return work;
}

}  // namespace hetnn::kernels
