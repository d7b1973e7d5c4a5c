// The steps of recurrent layers, vectorized.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

struct CellOps {
  /// sums[b · ld_sums + r] += sum over k of weight[r · n + k] · h[b · ld_h + k], r < rows, b < batch. What it gives for
  /// a b depends on no other.
  void (*add_products)(const float* weight, const float* h, int64_t ld_h, int64_t batch, int64_t n, int64_t rows,
                       float* sums, int64_t ld_sums);
  /// Of n units with the gates' sums i, o, f and g: the cell in place, and the new state.
  void (*lstm)(const float* i, const float* o, const float* f, const float* g, int64_t n, float* cell, float* h);
  /// Of n units with the sums of z, r and n: the new state, where `product` is what the state before gives n and
  /// `fresh` what the inputs give it.
  void (*gru)(const float* z, const float* r, const float* fresh, const float* product, const float* before, int64_t n,
              float* h);
};

const CellOps& cell_ops();

}  // namespace hetnn::kernels
