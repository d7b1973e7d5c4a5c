// Winograd convolution F(4x4, 3x3): 36 multiplications where direct convolution of a 4x4 output tile takes 144.
//
// A product that is not finite would reach all of its tile, also outputs that read nothing of the kind. Such a tile is
// summed directly, by the weights as they are, which stand packed behind the transformed ones: a quarter more, of which
// nothing is read elsewhere.
#pragma once

#include <memory>
#include <vector>

#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

struct Machine;

/// How the tiles of outputs are cut into blocks, and whether all threads work on one of them.
struct WinogradSplit {
  int64_t tiles = 0, block_tiles = 0;
  int64_t weight_bytes = 0;  // of the transformed weights
  bool shared = false;
};
WinogradSplit winograd_split(const WindowGeometry& geometry, const Machine& machine);

/// Why there is no such product for other windows than 3x3 of stride 1.
Refusal refuse_winograd(const WindowGeometry& geometry);

/// All activations nhwc; the weight packed by its packer.
std::unique_ptr<Kernel> make_winograd_conv(const KernelCall& call, const WindowGeometry& geometry);

/// weight [O, C, 3, 3] -> the 36 transformed matrices, each in panels: [36][ceil(O/16)][C][16]; then the weight itself
/// in panels, [ceil(O/16)][9][C][16].
std::unique_ptr<Packer> make_winograd_packer(const WindowGeometry& geometry);

}  // namespace hetnn::kernels
