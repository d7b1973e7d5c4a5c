// Convolutions of an image of few channels whose planes are read as they lie: vectors run over the pixels of a row, and
// a block of outputs is computed in registers.
#pragma once

#include <memory>

#include "hetnn/kernels/conv/geometry.h"

namespace hetnn::kernels {

/// Whether such a kernel serves a call of conv2d that `serves_conv2d` takes, whose weight is packed for a direct
/// convolution, and takes less time than the product whose rows are the pixels of windows.
bool planes_pay(const KernelCall& call, const WindowGeometry& g);

std::unique_ptr<Kernel> make_planes_conv(const KernelCall& call, const WindowGeometry& g);

}  // namespace hetnn::kernels
