// The transposition of elements of four bytes, vectorized, and of one and two bytes.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

/// to[j * to_ld + i] = from[i * from_ld + j] for i < rows, j < cols.
void transpose(const float* from, int64_t from_ld, float* to, int64_t to_ld, int64_t rows, int64_t cols);
void transpose(const int8_t* from, int64_t from_ld, int8_t* to, int64_t to_ld, int64_t rows, int64_t cols);
void transpose(const uint16_t* from, int64_t from_ld, uint16_t* to, int64_t to_ld, int64_t rows, int64_t cols);

}  // namespace hetnn::kernels
