// Three planes of an image as pixels.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

/// to[3 i + c] = from[c plane + i] for i < count.
void interleave_three(const float* from, int64_t plane, int64_t count, float* to);
void interleave_three(const uint16_t* from, int64_t plane, int64_t count, uint16_t* to);
void interleave_three(const int8_t* from, int64_t plane, int64_t count, int8_t* to);

}  // namespace hetnn::kernels
