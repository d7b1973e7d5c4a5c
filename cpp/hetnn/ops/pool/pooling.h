// What pooling operators share: a window over height and width.
#pragma once

#include <vector>

#include "hetnn/ops/window.h"

namespace hetnn::ops {

/// What one window reads of its plane: taps rows x columns, the first at element `first` if it lies inside.
struct Taps {
  Interval rows, columns;
  int64_t first, row_step, column_step;
  int64_t padded;  // taps inside the input or its padding

  int64_t count() const { return (rows.end - rows.begin) * (columns.end - columns.begin); }
  /// f(element) for each tap inside, row by row.
  template <typename F>
  void visit(F f) const {
    for (int64_t r = rows.begin; r < rows.end; ++r)
      for (int64_t c = columns.begin; c < columns.end; ++c) f(first + r * row_step + c * column_step);
  }
};

/// f(element of y, taps) for every element of y [N,C,OH,OW], with the taps of its window over x [N,C,H,W].
template <typename F>
void for_each_window(const Window& w, const View& x, const Result& y, F f) {
  const int64_t height = x.shape[2], width = x.shape[3];
  int64_t out = 0;
  for (int64_t plane = 0; plane < y.shape[0] * y.shape[1]; ++plane) {
    for (int64_t row = 0; row < y.shape[2]; ++row) {
      const Interval rows = w[0].taps(row, height);
      const int64_t padded_rows = w[0].taps(row, height + w[0].after).end;
      for (int64_t column = 0; column < y.shape[3]; ++column) {
        const int64_t padded_columns = w[1].taps(column, width + w[1].after).end;
        f(out++, Taps{rows, w[1].taps(column, width), (plane * height + w[0].begin(row)) * width + w[1].begin(column),
                      w[0].dilation * width, w[1].dilation, padded_rows * padded_columns});
      }
    }
  }
}

/// x [N,C,H,W] -> y [N,C,OH,OW], after checking the window against x (constraints c1 to c4 of the operator).
std::vector<Type> infer_pool(const Call& call);

/// One flop for every element of every window.
Work pool_work(const Call& call);
std::vector<Metric> pool_metrics(const Call& call);

/// The attributes that every pooling operator has, `ceil_mode` last, with the operator's own before it.
std::vector<AttrDef> pool_attrs(std::vector<AttrDef> own);

/// Fails with `label` unless kernel, stride and dilation are positive and padding is at most half the kernel.
void check_pool_window(const Call& call, const Window& window, std::string_view label);

}  // namespace hetnn::ops
