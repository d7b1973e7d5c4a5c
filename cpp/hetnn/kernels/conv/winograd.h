// Winograd convolution F(4x4, 3x3): 36 multiplications where direct convolution of a 4x4 output tile takes 144; of
// windows 1x3 and 3x1 F(4, 3): 6 where it takes 12. F(2x2, 3x3) takes 16 for 36, by weights that are transformed as
// they are needed: of small images with many channels, where four times the weights would come from memory. Of dilated
// windows, outputs a dilation apart make a tile.
//
// A product that is not finite would reach all of its tile, also outputs that read nothing of the kind. Such a tile is
// transformed without those inputs, and they are multiplied one by one; where they are many, it is summed directly.
// Both read the weights as they are, which stand packed behind the transformed ones: a quarter more, of which nothing
// is read elsewhere.
#pragma once

#include <memory>
#include <vector>

#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/conv/winograd_transform.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

struct Machine;

/// Between the points of a block of tiles, whose lines, written at once, would fall into one place of a cache.
inline constexpr int64_t kPointsApart_bytes = 64;

/// Tiles of outputs along one axis: of a window of three four outputs or two, of a window of one each output by itself.
struct WinogradAxis {
  int64_t outputs = 1, inputs = 1;  // of a tile
  int64_t step = 1;                 // elements from one of them to the next
  int64_t before = 0;               // elements of padding
  int64_t size = 1, tiles = 1;      // outputs along the axis

  WinogradAxis(const ops::WindowAxis& axis, int64_t size, int64_t side);
  /// The first output of a tile.
  int64_t begin(int64_t tile) const { return tile / step * outputs * step + tile % step; }
  /// How many outputs a tile has: the last ones of an axis lack some.
  int64_t filled(int64_t tile) const;
};

/// The same of images; of `side` outputs along an axis, 4 or 2.
struct WinogradTiles {
  int64_t side;
  WinogradAxis rows, columns;
  int64_t batch;

  WinogradTiles(const WindowGeometry& g, int64_t side);
  int64_t count() const { return batch * rows.tiles * columns.tiles; }
  int64_t points() const { return rows.inputs * columns.inputs; }
  int64_t outputs() const { return rows.outputs * columns.outputs; }
  /// The image, row and column of a tile's first output, and how many outputs there are.
  struct Place {
    int64_t n, y, x, rows, cols;
  };
  Place place_of(int64_t tile) const;
  /// Whether weights stand transformed where they are packed; else they are transformed as they are needed.
  bool store_weights() const { return side == kWinogradOutput; }
  bool are_lines() const { return rows.inputs == 1 || columns.inputs == 1; }
};

/// How the tiles of outputs are cut into blocks, and whether all threads work on one of them.
struct WinogradSplit {
  int64_t block_tiles = 0;
  int64_t whole_tiles = 0;   // a thread's share that has no more is one block: the weights are read once
  int64_t weight_bytes = 0;  // that are read
  bool shared = false;
};
WinogradSplit winograd_split(const WindowGeometry& geometry, int64_t side, const Machine& machine);

/// Why there is no such product: for other windows than 3x3 and, of four outputs, 1x3 and 3x1, of stride 1.
Refusal refuse_winograd(const WindowGeometry& geometry, int64_t side);

/// All activations nhwc; the weight packed by its packer.
std::unique_ptr<Kernel> make_winograd_conv(const KernelCall& call, const WindowGeometry& geometry, int64_t side);

/// weight [O, C, 3, 3] -> the 36 transformed matrices, each in panels: [36][ceil(O/16)][C][16]; then the weight itself
/// in panels, [ceil(O/16)][9][C][16]. Of three taps there are 6 matrices. Of two outputs a side only the weight itself.
/// Of the transformed matrices.
int64_t transformed_bytes(const WindowGeometry& geometry, int64_t side);
/// Of four outputs a side; of two, packed as for a direct product.
std::unique_ptr<Packer> make_winograd_packer(const WindowGeometry& geometry);

}  // namespace hetnn::kernels
