// Products of bf16 rows with packed panels of bf16, rounded to bf16, plus another value, rounded again, within bounds:
// by tiles (AMX) where the processor has them and rows are evenly spaced, else by the microkernel of pairs.
//
// Sums are f32. Tiles add pairs of products; they and products of pairs take denormals as 0.
#pragma once

#include "hetnn/kernels/elementwise/nary_narrow_ops.h"
#include "hetnn/kernels/gemm/brain_micro.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// Pointers and strides of one run.
struct BrainRun {
  const RowSource* source = nullptr;
  const std::byte* panels = nullptr;
  const float* bias = nullptr;       // as it is packed, or null
  const uint16_t* addend = nullptr;  // or null
  uint16_t* out = nullptr;
  int64_t ld_out = 0;
};

class BrainProduct {
 public:
  using Element = uint16_t;

  /// `shape`: of rows of bf16, in one group. The steps of the call are not refused.
  BrainProduct(const PanelShape& shape, const KernelCall& call);

  const PanelShape& shape() const { return shape_; }
  int64_t scratch_bytes_per_thread() const { return split_.scratch_bytes_per_thread(); }
  /// Whether it reads none but evenly spaced rows, up to whole steps.
  static bool reads_even_rows(const PanelShape& /*shape*/) { return false; }
  /// What stands for the real 0 in the rows.
  uint16_t row_zero() const { return 0; }
  /// A run on these pointers; its source is still to be set.
  BrainRun run_on(const std::byte* const* inputs, const std::byte* panels, const std::byte* bias, std::byte* out,
                  int64_t ld_out) const;
  /// This thread's share. `scratch` is this thread's own.
  void run(const BrainRun& run, int thread, int threads, std::byte* scratch) const;

  /// Why it does not take the steps of a call: it takes one sum with a value that lies as the result does, then bounds,
  /// which rounding does not move.
  static Refusal refuse_steps(std::string_view kernel, const KernelCall& call);
  /// Whether pairs of them are multiplied in markedly less time here than f32, and often enough for each result: of
  /// fewer, reading and writing take the time.
  static bool pairs_pay(const PanelShape& shape) { return shape.taps * shape.k >= 64 && brain_pairs_pay(); }

  /// The bias of a call is packed too.
  static bool is_weight(const KernelCall& call, int input) {
    return input == 1 || (input == 2 && call.params.integer("bias", 0) != 0);
  }
  static PanelShape packed_shape(PanelShape shape);
  /// Of a bias, f32, up to whole tiles.
  static int64_t packed_bias_bytes(int64_t cols);
  static std::vector<std::byte> pack_bias(int64_t cols, std::span<const std::byte> bias);

 private:
  void run_tiles(const BrainRun& run, const EvenRows& rows, int thread, int threads) const;
  // Of a tile's sums, lines of 32.
  void finish(const BrainRun& run, const float* sums, Share rows, int64_t col, int64_t cols) const;

  // Of the results that are there.
  void add(const BrainRun& run, Share rows, int64_t col, int64_t cols) const;

  PanelShape shape_;
  const BrainMicroTable* micro_;
  PanelSplit split_;
  HalvesConversion convert_;
  float low_ = -std::numeric_limits<float>::infinity(), high_ = std::numeric_limits<float>::infinity();
  int addend_input_ = -1;  // -1: none
  int64_t ld_addend_ = 0;
  bool by_tiles_;
};

}  // namespace hetnn::kernels
