// Products of bf16 rows with packed panels of bf16, rounded to bf16 once: by tiles (AMX), where the processor has them;
// else rows are made f32 a block at a time.
//
// Sums are f32. Tiles add pairs of products and take denormals as 0.
#pragma once

#include "hetnn/kernels/elementwise/nary_narrow_ops.h"
#include "hetnn/kernels/gemm/panels.h"

namespace hetnn::kernels {

/// Pointers of one run: x [rows,k], bias [cols] as it is packed, or null, out [rows,cols].
struct BrainRun {
  const uint16_t* x;
  const std::byte* panels;
  const float* bias;
  uint16_t* out;
};

class BrainProduct {
 public:
  /// `shape`: of rows and weights of bf16, in one group.
  BrainProduct(const PanelShape& shape, const KernelCall& call);

  const PanelShape& shape() const { return shape_; }
  /// Of a bias, f32, up to whole tiles.
  static int64_t packed_bias_bytes(int64_t cols);
  int64_t scratch_bytes(int threads) const;
  /// This thread's share, as Kernel::run.
  void run(const RunContext& context, const BrainRun& run) const;

 private:
  void run_tiles(const RunContext& context, const BrainRun& run) const;
  void run_widened(const RunContext& context, const BrainRun& run) const;
  // Of a tile's sums, lines of 32.
  void finish(const BrainRun& run, const float* sums, Share rows, int64_t col, int64_t cols) const;
  int64_t result_bytes() const;
  int64_t widened_bytes() const;

  PanelShape shape_;
  PanelProduct product_;  // of rows of f32
  HalvesConversion convert_;
  bool by_tiles_;
};

}  // namespace hetnn::kernels
