// What recurrent layers share: a sequence whose every step reads the state that the step before left.
#pragma once

#include <cmath>
#include <vector>

#include "hetnn/ops/infer.h"
#include "hetnn/ops/meaning.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

/// Types of the whole sequence [T,B,H] and of each last state [B,H]. Fails with `<op>_c1` where x [T,B,gates·H], weight
/// [gates·H,H], the states behind them and a bias [H] do not fit together.
inline std::vector<Type> infer_recurrent(const Call& call, int gates, size_t states) {
  const Type &x = call.input(0), &w = call.input(1);
  bool fits = is_float(x.dtype) && x.rank() == 3 && w.rank() == 2 && w.dtype == x.dtype;
  fits = fits && w.shape[0] == gates * w.shape[1] && x.shape[2] == w.shape[0];
  for (size_t k = 2; fits && k < call.inputs.size(); ++k) {
    if (!call.has(k)) continue;
    const Shape wanted = k < 2 + states ? Shape{x.shape[1], w.shape[1]} : Shape{w.shape[1]};
    fits = call.input(k).dtype == x.dtype && call.input(k).shape == wanted;
  }
  if (!fits) {
    fail(call, text(call.op->name, "_c1"),
         text("x must be reals [T,B,", gates, "H], weight [", gates, "H,H] and each state [B,H]; got x ", to_string(x),
              ", weight ", to_string(w), " and state ", to_string(call.input(2)), "."));
  }
  std::vector<Type> out = {{x.dtype, {x.shape[0], x.shape[1], w.shape[1]}}};
  for (size_t k = 0; k < states; ++k) out.push_back({x.dtype, {x.shape[1], w.shape[1]}});
  return out;
}

inline Work recurrent_work(const Call& call) {
  const Shape &x = call.input(0).shape, &w = call.input(1).shape;
  return {.macs = elements(x) * w[1], .flops = elements(x) * 8};
}

template <typename T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

/// Runs a layer: `unit(sums, t, b, j)` gives the new state of unit j from the products of its gates with the state
/// before; what it keeps besides is its own.
template <typename T, typename Unit>
void run_steps(const Evaluation& e, int64_t gates, Unit unit) {
  const View &x = e.input(0), &h = e.input(2);
  const int64_t steps = x.shape[0], batch = x.shape[1], units = e.input(1).shape[1];
  const T* weight = e.input(1).values<T>().data();
  std::vector<T> state(h.values<T>().begin(), h.values<T>().end()), next(state.size()),
      sums(static_cast<size_t>(gates));
  T* y = e.output(0).template values<T>();
  const bool reverse = e.call.flag("reverse");
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t t = reverse ? steps - 1 - step : step;
    for (int64_t b = 0; b < batch; ++b) {
      const T* before = state.data() + b * units;
      for (int64_t j = 0; j < units; ++j) {
        for (int64_t g = 0; g < gates; ++g) {
          const T* row = weight + (g * units + j) * units;
          double sum = 0;
          for (int64_t k = 0; k < units; ++k) sum += static_cast<double>(row[k]) * static_cast<double>(before[k]);
          sums[static_cast<size_t>(g)] = static_cast<T>(sum);
        }
        next[static_cast<size_t>(b * units + j)] = unit(sums.data(), t, b, j, before[j]);
      }
    }
    state.swap(next);
    std::copy(state.begin(), state.end(), y + t * batch * units);
  }
  std::copy(state.begin(), state.end(), e.output(1).template values<T>());
}

}  // namespace hetnn::ops
