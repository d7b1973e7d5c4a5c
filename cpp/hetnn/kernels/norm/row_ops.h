// Sums, extremes, softmax and affine maps over rows, vectorized: the pieces of norms, softmax, reductions and
// attention.
#pragma once

#include <cstdint>

namespace hetnn::kernels {

/// Which rows whose softmax is NaN become zeros: those of -inf throughout, none, all.
enum class UndefinedRows : uint8_t { masked, kept, zeros };

/// n elements, to which before their softmax `added` is added, or 0 where `allowed` is not 0 and -inf elsewhere; or
/// nothing.
struct MaskedRow {
  float* x;
  int64_t n;
  const float* added = nullptr;
  const uint8_t* allowed = nullptr;
};

struct RowOps {
  /// Sum of x[0..n). Short partial sums are added in double, so that long rows stay accurate.
  double (*sum)(const float* x, int64_t n);
  /// Sum of (x - shift)^2.
  double (*squares)(const float* x, int64_t n, float shift);
  /// NaN if any element is; -inf (max) or inf (min) for an empty row.
  float (*max)(const float* x, int64_t n);
  float (*min)(const float* x, int64_t n);

  /// y = (x - mean) * scale * weight + bias; weight and bias may be null. y may be x.
  void (*normalize)(const float* x, float* y, int64_t n, float mean, float scale, const float* weight,
                    const float* bias);
  /// y = x * scale + shift. y may be x.
  void (*scaled)(const float* x, float* y, int64_t n, float scale, float shift);
  /// y[r][c] = x[r][c] * scale[c] + shift[c], rows ld apart.
  void (*affine)(const float* x, int64_t ld_x, float* y, int64_t ld_y, int64_t rows, int64_t cols, const float* scale,
                 const float* shift);
  /// sums[c] += sum over rows of x[r][c] - shift[c] (squared when `square`); shift may be null (0).
  void (*column_sums)(const float* x, int64_t ld, int64_t rows, int64_t cols, const float* shift, bool square,
                      double* sums);

  /// y = softmax(x), or its logarithm. y may be x.
  void (*softmax)(const float* x, float* y, int64_t n, bool log);
  /// In place over the first axis of x[n][16]: 16 softmaxes side by side.
  void (*softmax_columns)(float* x, int64_t n, bool log);
  /// x = softmax(x * scale + mask) of each of at most kMaskedRows rows.
  void (*softmax_masked)(const MaskedRow* rows, int64_t count, float scale, UndefinedRows undefined);
};

/// Width of softmax_columns.
inline constexpr int64_t kSoftmaxColumns = 16;
/// Of softmax_masked.
inline constexpr int64_t kMaskedRows = 28;

const RowOps& row_ops();

}  // namespace hetnn::kernels
