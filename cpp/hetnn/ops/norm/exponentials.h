// What softmax and its logarithm share.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"

namespace hetnn::ops {

/// The input's type; its axis must exist and its values be real.
inline std::vector<Type> infer_exponentials(const Call& call) {
  axis_of(call, call.integer("axis"), call.input(0).rank());
  if (!is_real(call.input(0)))
    fail(call, std::string(call.op->name) + "_c1",
             text("the input must be real; got ", dtype_name(call.input(0).dtype), ". Cast it."));
  return {call.input(0)};
}

/// y = normalize(x - largest, sum of exp(x - largest)) along the axis.
template <typename Normalize>
std::vector<Tensor> evaluate_exponentials(const Evaluation& e, Normalize normalize) {
  const Tensor& x = e.input(0);
  const auto axis = static_cast<size_t>(axis_of(e.call, e.call.integer("axis"), x.rank()));
  int64_t inner = 1;
  for (size_t k = axis + 1; k < x.shape().size(); ++k) inner *= x.shape()[k];
  const int64_t n = x.rank() == 0 ? 1 : x.shape()[axis];
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), x.shape(), &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto xv = x.values<T>();
    for (int64_t line = 0; n > 0 && line < x.elems() / n; ++line) {
      const int64_t first = line / inner * n * inner + line % inner;
      auto at = [&](int64_t k) { return static_cast<double>(xv[static_cast<size_t>(first + k * inner)]); };
      double largest = at(0), sum = 0;
      for (int64_t k = 1; k < n; ++k) largest = largest != largest || largest > at(k) ? largest : at(k);
      for (int64_t k = 0; k < n; ++k) sum += std::exp(at(k) - largest);
      for (int64_t k = 0; k < n; ++k)
        mutable_values<T>(data)[first + k * inner] = static_cast<T>(normalize(at(k) - largest, sum));
    }
  });
  return {y};
}

/// Work of both: twelve flops an element.
inline Work exponentials_work(const Call& call) {
  return {.macs = 0, .flops = elements(call.output().shape) * 12};
}

}  // namespace hetnn::ops
