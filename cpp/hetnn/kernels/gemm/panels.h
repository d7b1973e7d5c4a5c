// Products of f32 rows with packed panels: the shared engine of linear, matmul, convolution and transposed convolution.
//
// out[row][col] = clamp(sum over taps and k of a(row, tap)[k] * panel[col/16][tap][k][col%16] + bias[col] +
// addend[row][col]), an elementwise function before the clamp where one comes first, then the epilogue.
#pragma once

#include "hetnn/kernels/epilogue.h"
#include "hetnn/kernels/gemm/micro.h"
#include "hetnn/kernels/gemm/split.h"

namespace hetnn::kernels {

/// Packs an f32 weight into panels; a part is a panel.
class PanelPacker final : public Packer {
 public:
  /// `first`: the element of the weight that the strides count from.
  PanelPacker(const PanelShape& shape, const PackStrides& strides, int64_t first = 0)
      : shape_(shape), strides_(strides), first_(first) {}
  int64_t packed_bytes() const override { return shape_.packed_bytes(); }
  int64_t parts() const override { return shape_.groups * shape_.panels_per_group(); }
  void pack(Share parts, const std::byte* weight, std::byte* packed) const override {
    pack_panels(shape_, parts, reinterpret_cast<const float*>(weight) + first_, strides_,
                reinterpret_cast<float*>(packed));
  }

 private:
  PanelShape shape_;
  PackStrides strides_;
  int64_t first_;
};

/// Pointers and strides of one run.
struct PanelRun {
  const RowSource* source = nullptr;
  const float* panels = nullptr;
  const float* bias = nullptr;    // groups * cols elements, or null
  const float* addend = nullptr;  // rows ld_addend apart, or null
  int64_t ld_addend = 0;
  float* out = nullptr;
  int64_t ld_out = 0;
  int64_t first_row = 0;  // number of the first row as the epilogue counts
  const std::byte* const* inputs = nullptr;
};

class PanelProduct {
 public:
  using Element = float;

  PanelProduct() = default;
  PanelProduct(const PanelShape& shape, EpiloguePlan epilogue);
  /// With the steps of the call.
  PanelProduct(const PanelShape& shape, const KernelCall& call)
      : PanelProduct(shape, EpiloguePlan(call, call.outputs[0])) {}

  const PanelShape& shape() const { return shape_; }
  const RegisterPart& register_part() const { return registers_; }
  int64_t scratch_bytes_per_thread() const { return split_.scratch_bytes_per_thread(); }
  /// A run on these pointers, the addend of the register part among them; its source is still to be set.
  PanelRun run_on(const std::byte* const* inputs, const std::byte* panels, const std::byte* bias, std::byte* out,
                  int64_t ld_out) const;
  /// Whether it reads none but evenly spaced rows, up to whole steps.
  static bool reads_even_rows(const PanelShape& /*shape*/) { return false; }
  /// What stands for the real 0 in the rows.
  float row_zero() const { return 0; }
  /// The most rows that are asked of a source at once.
  int64_t block_rows() const { return split_.block_rows(); }

  /// This thread's share. `scratch` is this thread's own.
  void run(const PanelRun& run, int thread, int threads, std::byte* scratch) const;
  /// The same of some of the rows, few as a rule: threads share the columns.
  void run_group(const PanelRun& run, Share rows, int thread, int threads, std::byte* scratch) const;

 private:
  MicroTile tile_of(const PanelRun& run, float* sums) const;
  MicroFunction function_of(const TilePlace& place) const;
  void run_tile(const PanelRun& run, const TilePlace& place, MicroTile& tile) const;

  PanelShape shape_;
  EpiloguePlan epilogue_;
  RegisterPart registers_;
  FinishFunction finish_ = nullptr;
  const MicroTable* micro_ = nullptr;
  const HalfTiles* half_ = nullptr;
  PanelSplit split_;
  // Of a product of one row and strips of one width: elsewhere columns of equal weights would not be equal.
  bool lone_ = false;
};

}  // namespace hetnn::kernels
