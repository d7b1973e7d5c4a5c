// The meaning of the convolutions, as plain loops in double over channels-first tensors; for tests.
#pragma once

#include <vector>

#include "hetnn/kernels/conv/geometry.h"

namespace hetnn::kernels::reference {

/// x [N,C,H,W], weight [O,C/groups,kh,kw], bias [O] or empty -> [N,O,OH,OW].
std::vector<double> conv2d(const WindowGeometry& g, const std::vector<double>& x, const std::vector<double>& weight,
                           const std::vector<double>& bias);

/// x [N,C,H,W], weight [C,O/groups,kh,kw], bias [O] or empty -> [N,O,OH,OW].
std::vector<double> conv_transpose2d(const WindowGeometry& g, const std::vector<double>& x,
                                     const std::vector<double>& weight, const std::vector<double>& bias);

}  // namespace hetnn::kernels::reference
