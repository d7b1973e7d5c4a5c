// Products of f32 rows with weights that are kept in fewer bits: a strip of panels is made reals, a part of k at a
// time, and multiplied by all rows of a block before the next.
#pragma once

#include <algorithm>

#include "hetnn/kernels/gemm/micro.h"

namespace hetnn::kernels {

/// Pointers of one run: x [rows,k], bias [cols] or null, out [rows,cols].
struct ExpandedRun {
  const float* x;
  const float* bias;
  float* out;
};

class ExpandedProduct {
 public:
  /// `block`: of how many k some are expanded together.
  ExpandedProduct(int64_t rows, int64_t k, int64_t cols, int64_t block)
      : k_(k),
        cols_(cols),
        block_(block),
        chunk_(std::max<int64_t>(1, (std::min(kChunk, k) + block - 1) / block) * block),
        micro_(&micro_table()),
        wide_(micro_->panels_for(rows, (cols + kPanel - 1) / kPanel, 2)) {}

  int64_t scratch_bytes_per_thread() const { return chunk_ * kPanel * 4 * wide_; }

  /// Some rows of the columns of some panels, by this thread. expand(panel, first block, blocks, to): those blocks of k
  /// of a panel as reals, [blocks block][16].
  template <typename Expand>
  void run(const ExpandedRun& run, Share rows, Share panels, std::byte* scratch, const Expand& expand) const {
    auto* reals = reinterpret_cast<float*>(scratch);
    for (int64_t panel = panels.begin, wide = 0; panel < panels.end; panel += wide) {
      wide = std::min<int64_t>(wide_, panels.end - panel);
      for (int64_t k = 0; k < std::max<int64_t>(k_, 1); k += chunk_) {
        const int64_t count = std::min(chunk_, k_ - k), blocks = (count + block_ - 1) / block_;
        for (int64_t p = 0; p < wide; ++p) expand(panel + p, k / block_, blocks, reals + p * chunk_ * kPanel);
        multiply(run, rows, panel, static_cast<int>(wide), {k, k + count}, reals);
      }
    }
  }

 private:
  static constexpr int64_t kChunk = 1024;  // k of what is expanded, so that it stays in the second level

  void multiply(const ExpandedRun& run, Share rows, int64_t panel, int wide, Share k, const float* reals) const;

  int64_t k_, cols_, block_, chunk_;
  const MicroTable* micro_;
  int wide_;
};

}  // namespace hetnn::kernels
