// Feature maps between layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hetnn/base/layout.h"

namespace hetnn::runtime {

/// How a rank-4 value lies in memory; `pitch_elems` counts from pixel to pixel (nhwc only).
struct MapLayout {
  Layout layout = Layout::plain;
  int64_t pitch_elems = 0;
};

/// Copies a value of shape [N,C,H,W], in elements of 1, 2, 4 or 8 bytes, from one layout to another.
void copy_map(int64_t elem_bytes, const std::vector<int64_t>& shape, const std::byte* from, const MapLayout& in,
              std::byte* to, const MapLayout& out);

}  // namespace hetnn::runtime
