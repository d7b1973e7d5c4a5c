// A value between the pixels of a plane.
#pragma once

#include <cmath>
#include <cstdint>

namespace hetnn::ops {

/// Of a row-major plane [height,width] at (y, x), linearly between its four neighbours; what lies outside is 0.
template <typename T>
double bilinear(const T* plane, int64_t height, int64_t width, double y, double x) {
  if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width))) return 0;
  const double top = std::floor(y), left = std::floor(x), down = y - top, right = x - left;
  const auto row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
  const auto at = [&](int64_t i, int64_t j) {
    return i < 0 || i >= height || j < 0 || j >= width ? 0.0 : static_cast<double>(plane[i * width + j]);
  };
  return (1 - down) * ((1 - right) * at(row, column) + right * at(row, column + 1)) +
         down * ((1 - right) * at(row + 1, column) + right * at(row + 1, column + 1));
}

}  // namespace hetnn::ops
