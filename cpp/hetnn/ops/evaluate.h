// Loops shared by the reference meanings of operators: plain, slow, obviously right.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/base/tensor.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {

/// Calls `f` with a value of the C++ type of `dtype` (float, double, int8_t, … bool; f16 and bf16 have none and throw
/// Unsupported): f(T{}).
template <typename F>
auto visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i8:
      return f(int8_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::i16:
      return f(int16_t{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::boolean:
      return f(bool{});
    default:
      break;
  }
  throw Unsupported(
      text("the reference has no arithmetic for ", dtype_name(dtype), ". Convert the model to f32 first."));
}

template <typename T>
T* mutable_values(std::byte* data) {
  return reinterpret_cast<T*>(data);
}

/// Row-major strides of a concrete shape, in elements.
std::vector<int64_t> strides_of(const std::vector<int64_t>& shape);

/// Strides that walk `from` while the index runs over `to` (0 along broadcast dims).
std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& from, const std::vector<int64_t>& to);

/// Calls f(index) for every index of `shape` in row-major order.
void for_each_index(const std::vector<int64_t>& shape, const std::function<void(const std::vector<int64_t>&)>& f);

/// y[i] = f(x[i]) over one input of any numeric type T; f is generic: auto f(T).
template <typename F>
std::vector<Tensor> map_unary(const Evaluation& e, F f) {
  const Tensor& x = e.input(0);
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), x.shape(), &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto in = x.values<T>();
    for (size_t k = 0; k < in.size(); ++k) mutable_values<T>(data)[k] = static_cast<T>(f(in[k]));
  });
  return {y};
}

/// y[index] = x's element number first + Σ index·strides, for every index of `shape`; any element type.
Tensor gather_strided(const Tensor& x, const std::vector<int64_t>& shape, int64_t first,
                      const std::vector<int64_t>& strides);

/// y[i] = f(x[i]) for f over doubles, rounded once to the input's type.
std::vector<Tensor> map_real(const Evaluation& e, const std::function<double(double)>& f);

/// A reduction in double by `axes` and `keepdim`: finish(fold of step from initial, number of elements folded). `out`
/// is the result's type; none: the input's.
std::vector<Tensor> reduce_real(const Evaluation& e, double initial,
                                const std::function<double(double, double)>& step,
                                const std::function<double(double, int64_t)>& finish,
                                std::optional<DType> out = std::nullopt);

/// y[i] = f(a[i], b[i]) with broadcasting; the result has element type `out` (bool for comparisons).
template <typename F>
std::vector<Tensor> map_binary(const Evaluation& e, F f, bool to_bool = false) {
  const Tensor &a = e.input(0), &b = e.input(1);
  const std::vector<int64_t> shape = e.output_shape();
  const auto sa = broadcast_strides(a.shape(), shape), sb = broadcast_strides(b.shape(), shape);
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(to_bool ? DType::boolean : a.dtype(), shape, &data);
  visit_dtype(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto va = a.values<T>(), vb = b.values<T>();
    int64_t at = 0;
    for_each_index(shape, [&](const std::vector<int64_t>& index) {
      int64_t ia = 0, ib = 0;
      for (size_t d = 0; d < index.size(); ++d) ia += index[d] * sa[d], ib += index[d] * sb[d];
      const auto value = f(va[static_cast<size_t>(ia)], vb[static_cast<size_t>(ib)]);
      if (to_bool) {
        mutable_values<bool>(data)[at++] = static_cast<bool>(value);
      } else {
        mutable_values<T>(data)[at++] = static_cast<T>(value);
      }
    });
  });
  return {y};
}

}  // namespace hetnn::ops
