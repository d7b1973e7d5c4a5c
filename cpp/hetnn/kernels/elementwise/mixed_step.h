// Steps whose operands or result are of another type than the tile, or whose running value is not their first operand:
// comparisons, choices, conversions of truth values, and functions of two values the other way round.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "hetnn/kernels/block_ops.h"
#include "hetnn/kernels/elementwise/compare_ops.h"
#include "hetnn/kernels/elementwise/sum_step.h"
#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

/// Chains with such steps are computed in stretches of at most so many elements, one step after another.
inline constexpr int64_t kMixedElems = 1024;

/// Rows of a stretch, ld elements apart.
struct MixedRows {
  float* at;
  int64_t ld;
  /// Where the running value is true, a byte of 0 or 1 an element, all one behind the other.
  uint8_t* truths;
};

class MixedStep {
 public:
  /// Of a step that is not refused.
  explicit MixedStep(const Step& step);

  size_t operands() const { return count_ - 1; }
  int64_t operand_bytes(size_t operand) const { return bytes_of(position_of(operand)); }
  bool reads_truths() const { return is_truth(main_); }
  bool makes_truths() const { return makes_truths_; }

  /// The step on rows x cols elements of the running value `in` (f32, where reads_truths does not say other) into
  /// `out`.
  void apply(const float* in, int64_t ld_in, const MixedRows& out, int64_t rows, int64_t cols,
             const SumStep::Operand* operands) const;

 private:
  // Among the function's operands.
  size_t position_of(size_t operand) const { return operand + (operand >= main_ ? 1 : 0); }
  bool is_truth(size_t position) const { return dtype_ == DType::boolean || (choose_ != nullptr && position == 0); }
  int64_t bytes_of(size_t position) const { return is_truth(position) ? 1 : int64_t{sizeof(float)}; }

  size_t count_, main_;  // of the function's operands
  DType dtype_;
  bool makes_truths_;
  float c0_, c1_;
  CompareFunction compare_ = nullptr;
  ChoiceFunction choose_ = nullptr;
  BlockFunction map_ = nullptr;  // none of the three: truth values become f32
};

/// What a chain of steps keeps while it computes a stretch: the running value in f32 or as truth values, in which type
/// it comes in and goes out. `truths` of a tile are rows of bytes.
struct TileIn {
  const float* at;  // null: truth values
  const uint8_t* truths;
  int64_t ld;
};
struct TileOut {
  float* at;  // null: truth values
  uint8_t* truths;
  int64_t ld;
};

/// Runs steps in stretches of a tile: each(first row, first column, rows, columns, stretch) computes all steps on
/// stretch.in into stretch.rows, and says whether they leave truth values.
struct MixedStretch {
  const float* in;  // null where it begins with truth values, in rows.truths
  int64_t ld_in;
  MixedRows rows;
};
template <typename Each>
void for_stretches(int64_t rows, int64_t cols, const TileIn& in, const TileOut& out, const Each& each) {
  alignas(64) float room[kMixedElems];
  alignas(64) uint8_t truths[kMixedElems];
  const int64_t width = std::min(cols, kMixedElems);
  const int64_t lines = width == 0 ? 1 : std::clamp<int64_t>(kMixedElems / width, 1, std::max<int64_t>(1, rows));
  for (int64_t r = 0; r < rows; r += lines) {
    for (int64_t c = 0; c < cols; c += width) {
      const int64_t here = std::min(lines, rows - r), n = std::min(width, cols - c);
      MixedStretch stretch{in.at == nullptr ? nullptr : in.at + r * in.ld + c, in.ld, {room, n, truths}};
      if (out.at != nullptr) stretch.rows = {out.at + r * out.ld + c, out.ld, truths};
      for (int64_t k = 0; in.at == nullptr && k < here; ++k)
        std::copy_n(in.truths + (r + k) * in.ld + c, n, truths + k * n);
      const bool leaves_truths = each(r, c, here, n, stretch);
      for (int64_t k = 0; leaves_truths && k < here; ++k) {
        if (out.at == nullptr) {
          std::copy_n(truths + k * n, n, out.truths + (r + k) * out.ld + c);
        } else {
          truth_ops().widen(truths + k * n, stretch.rows.at + k * stretch.rows.ld, n);
        }
      }
    }
  }
}

}  // namespace hetnn::kernels
