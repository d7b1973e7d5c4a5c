// Winograd convolution F(4x4, 3x3): 36 multiplications where direct convolution of a 4x4 output tile takes 144.
#pragma once

#include <memory>
#include <vector>

#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// 3x3, stride 1, dilation 1, one group, enough channels and pixels to outweigh the transforms.
bool winograd_pays(const WindowGeometry& geometry);

/// Why there is no such product for other windows than 3x3 of stride 1.
Refusal refuse_winograd(const WindowGeometry& geometry);

/// All activations nhwc; the weight packed by its packer.
std::unique_ptr<Kernel> make_winograd_conv(const KernelCall& call, const WindowGeometry& geometry);

/// weight [O, C, 3, 3] -> the 36 transformed matrices, each in panels: [36][ceil(O/16)][C][16].
std::unique_ptr<Packer> make_winograd_packer(const WindowGeometry& geometry);
int64_t packed_winograd_bytes(const WindowGeometry& geometry);

}  // namespace hetnn::kernels
