// Winograd convolution F(4x4, 3x3) of bytes, exact: half as many vectors of products as the bytes themselves take.
//
// The transforms at the points 0, +-1, +-2 and infinity have integer coefficients once each point's weights are
// multiplied by what G divides by; inputs and weights then fit 16 bits. Their products' sums, taken modulo 2^32, hold
// the output times 2^a * 9, of which 9 is divided out by its inverse modulo 2^32 and 2^a by a shift. So every output of
// less than 25 bits is what summing it directly gives.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hetnn/kernels/conv/geometry.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// Why there is no such product: it takes 3x3 windows of stride 1, no more channels than keep sums below 25 bits, and
/// weights without a zero point.
Refusal refuse_integer_winograd(const WindowGeometry& geometry, int32_t weight_zero);

/// Whether this machine has products of 16 bits, and none of bytes that beat it.
bool has_integer_winograd();

/// All activations nhwc. The weight: what the direct product reads, then the transformed one.
std::unique_ptr<Kernel> make_integer_winograd_conv(const KernelCall& call, const WindowGeometry& geometry);

/// Bytes of a transformed weight.
int64_t integer_winograd_bytes(const WindowGeometry& geometry);

/// weight [O, C, 3, 3] -> the 36 transformed matrices, each in panels of pairs: [36][ceil(O/16)][ceil(C/2)][16][2].
void transform_integer_weight(const WindowGeometry& geometry, std::span<const std::byte> weight, std::byte* to);

}  // namespace hetnn::kernels
