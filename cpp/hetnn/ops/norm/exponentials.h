// What softmax and its logarithm share.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "hetnn/ops/exp_row.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {

/// The input's type; its axis must exist and its values be real.
inline std::vector<Type> infer_exponentials(const Call& call) {
  axis_of(call, call.integer("axis"), call.input(0).rank());
  if (!is_real(call.input(0)))
    fail(call, std::string(call.op->name) + "_c1",
         text("the input must be real; got ", dtype_name(call.input(0).dtype), ". Cast it."));
  return {call.input(0)};
}

/// y = normalize(x) along the axis: normalize(row, exact) replaces a row of doubles, exact where they are f64.
template <typename Normalize>
void evaluate_exponentials(const Evaluation& e, Normalize normalize) {
  const View& x = e.input(0);
  const Result y = e.output();
  if (x.elems() == 0) return;
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), x.rank()));
  int64_t inner = 1;
  for (size_t k = axis + 1; k < x.shape.size(); ++k) inner *= x.shape[k];
  const int64_t n = x.rank() == 0 ? 1 : x.shape[axis];
  // Lines along the axis in blocks of neighbours: runs of memory where the axis is the last, else columns side by side.
  const bool last = inner == 1;
  const int64_t groups = last ? 1 : x.elems() / (n * inner), lines = x.elems() / (n * groups);
  const int64_t block = std::max<int64_t>(last ? 1 : 16, 2048 / n);
  std::vector<double> rows;
  visit_wide_reals(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t group = 0; group < groups; ++group) {
      for (int64_t first = 0; first < lines; first += block) {
        const int64_t count = std::min(block, lines - first), start = group * n * inner + first * (last ? n : 1);
        const std::vector<int64_t> shape = last ? std::vector{count, n} : std::vector{n, count};
        const std::array<Strides, 2> strides =
            last ? std::array{Strides{n, 1}, Strides{n, 1}} : std::array{Strides{1, n}, Strides{inner, 1}};
        rows.resize(static_cast<size_t>(count * n));
        const T* from = x.values<T>().data() + start;
        T* to = y.values<T>() + start;
        double* into = rows.data();
        nest<2>(shape, strides, [=](int64_t line, int64_t at) { into[line] = static_cast<double>(from[at]); });
        for (int64_t line = 0; line < count; ++line)
          normalize(std::span(into + line * n, static_cast<size_t>(n)), std::is_same_v<T, double>);
        nest<2>(shape, strides, [=](int64_t line, int64_t at) { to[at] = static_cast<T>(into[line]); });
      }
    }
  });
}

/// Work of both: twelve flops an element.
inline Work exponentials_work(const Call& call) { return {.macs = 0, .flops = elements(call.output().shape) * 12}; }

}  // namespace hetnn::ops
