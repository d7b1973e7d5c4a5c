// The operator mirror.
#pragma once

#include <span>

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

std::span<const Variant> mirror_variants();

}  // namespace hetnn::kernels
