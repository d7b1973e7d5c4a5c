// Convolutions of an image of few channels whose planes are read as they lie: vectors run over the pixels of a row, and
// a block of outputs is computed in registers.
#pragma once

#include <memory>

#include "hetnn/kernels/conv/geometry.h"

namespace hetnn::kernels {

/// Why there is no such kernel: many channels, or sums of many products. It reads a plain image and writes nhwc.
Refusal refuse_planes(const WindowGeometry& g);

/// The weight packed for a direct convolution.
std::unique_ptr<Kernel> make_planes_conv(const KernelCall& call, const WindowGeometry& g);

}  // namespace hetnn::kernels
