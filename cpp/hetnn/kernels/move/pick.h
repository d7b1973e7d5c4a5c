// Picks elements out of one row after another, always the same ones, by permutations of what is read at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace hetnn::kernels {

/// Sixteen neighbours of the result, out of two runs of sixteen neighbours.
struct alignas(64) Picked {
  std::array<int32_t, 16> lanes;  // below 16: of the first run; else 16 more than in the second
  int64_t first, second;          // where the runs begin
};

/// One plan of `picked` vectors serves every row: y[row][k] = x[row][at(k)], k < count, rows `x_row` and `y_row` apart.
using PickFunction = void (*)(const Picked* picked, int64_t count, int64_t rows, const float* x, int64_t x_row,
                              float* y, int64_t y_row);

/// Null where the instruction set has no such permutation.
PickFunction pick_function();

/// The plan of picking at(k), k < count, out of rows of `size` >= 16; false where some vector needs a third run.
template <typename At>
bool plan_picking(const At& at, int64_t count, int64_t size, Picked* out) {
  for (int64_t begin = 0; begin < count; begin += 16, ++out) {
    const int64_t some = std::min<int64_t>(16, count - begin);
    const auto least_from = [&](int64_t from) {
      int64_t least = size;
      for (int64_t k = 0; k < some; ++k)
        if (at(begin + k) >= from) least = std::min<int64_t>(least, at(begin + k));
      return std::min(least, size - 16);
    };
    out->first = least_from(0);
    out->second = least_from(out->first + 16);
    for (int64_t k = 0; k < 16; ++k) {
      const int64_t index = at(begin + std::min(k, some - 1));
      const bool in_first = index < out->first + 16;
      if (!in_first && index >= out->second + 16) return false;
      out->lanes[static_cast<size_t>(k)] =
          static_cast<int32_t>(in_first ? index - out->first : index - out->second + 16);
    }
  }
  return true;
}

}  // namespace hetnn::kernels
