// The edges of every element type, and calls of operators on them.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "hetnn/base/visit_dtype.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops::testing {

/// Least, greatest, 0, 1, -1 and their neighbours; of reals also NaN, infinities, -0, denormals and halves; of i64 and
/// f64 2^53 + 1, which double does not hold.
template <typename T>
std::vector<T> edges() {
  if constexpr (kIsNarrowFloat<T>) {
    std::vector<T> out;
    for (float value : edges<float>()) out.push_back(T(value));
    out.push_back(std::bit_cast<T>(uint16_t{0x0001}));  // the least denormal
    out.push_back(std::bit_cast<T>(uint16_t{0x8001}));
    return out;
  } else if constexpr (std::is_same_v<T, bool>) {
    return {false, true};
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    std::vector<T> out = {Limits::min(),
                          static_cast<T>(Limits::min() + 1),
                          0,
                          1,
                          2,
                          3,
                          7,
                          static_cast<T>(-1),
                          static_cast<T>(-7),
                          static_cast<T>(Limits::max() - 1),
                          Limits::max()};
    if (sizeof(T) == 8) out.push_back(static_cast<T>((int64_t{1} << 53) + 1));
    return out;
  } else {
    using Limits = std::numeric_limits<T>;
    std::vector<T> out = {T(0), T(-0.0), Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()};
    for (const T magnitude : {Limits::denorm_min(), Limits::min(), T(1e-3), T(0.25), T(0.5), T(1), T(1.5), T(2), T(2.5),
                              T(3), T(7), T(20.5), T(100), T(9007199254740993.0), Limits::max()})
      out.insert(out.end(), {magnitude, -magnitude});
    return out;
  }
}

template <typename T>
Tensor tensor(const std::vector<T>& values) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DTypeOf<T>::value, {static_cast<int64_t>(values.size())}, &data);
  for (size_t k = 0; k < values.size(); ++k) reinterpret_cast<T*>(data)[k] = values[k];
  return out;
}

/// The operator's first result for these inputs.
inline Tensor evaluate(std::string_view op, const std::vector<Tensor>& inputs, const Attrs& attrs = {}) {
  std::vector<Type> types;
  for (const Tensor& input : inputs) types.push_back({input.dtype(), {input.shape().begin(), input.shape().end()}});
  Call call;
  call.op = &OpTable::global().get(op);
  call.attrs = attrs;
  std::vector<std::optional<Tensor>> values(inputs.begin(), inputs.end());
  for (const Type& type : types) call.inputs.push_back({&type, nullptr});
  complete(call);
  return ops::evaluate(call, values, {}).front();
}

/// Calls f(T{}) for every element type.
template <typename F>
void for_all_types(F f) {
  for (DType dtype : kComputedDTypes) visit_dtype(dtype, f);
}

}  // namespace hetnn::ops::testing
