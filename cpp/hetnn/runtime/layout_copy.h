// Values between layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/base/layout.h"

namespace hetnn::runtime {

/// How a rank-4 value lies in memory; `pitch_elems` counts from pixel to pixel (nhwc only).
struct MapLayout {
  Layout layout = Layout::plain;
  int64_t pitch_elems = 0;
};

/// Copies a value from one layout to another. Values of other ranks than 4 must be dense.
void copy_value(DType dtype, const std::vector<int64_t>& shape, const std::byte* from, const MapLayout& in,
                std::byte* to, const MapLayout& out);

}  // namespace hetnn::runtime
