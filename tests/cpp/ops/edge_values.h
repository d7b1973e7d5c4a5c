// Values at the edges of every element type, and tensors of them.
#pragma once

#include <cstring>
#include <initializer_list>
#include <limits>
#include <vector>

#include "hetnn/base/tensor.h"
#include "hetnn/base/visit_dtype.h"

namespace hetnn {

/// A tensor of numbers, each converted to T exactly.
template <typename T>
Tensor tensor_of(std::vector<int64_t> shape,
                 std::initializer_list<std::conditional_t<kIsFloat<T>, double, int64_t>> of) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(DTypeOf<T>::value, std::move(shape), &data);
  HETNN_ASSERT(out.elems() == static_cast<int64_t>(of.size()));
  auto* to = reinterpret_cast<T*>(data);
  for (const auto value : of) *to++ = static_cast<T>(static_cast<Wide<T>>(value));
  return out;
}

/// Least, greatest, 0, ±1; 2^53 + 1 where it is an i64; NaN, ±inf, -0 and the least positive number of reals.
template <typename T>
std::vector<T> edge_values() {
  using W = Wide<T>;
  using Limits = std::numeric_limits<W>;
  const auto of = [](auto value) { return static_cast<T>(static_cast<W>(value)); };
  if constexpr (kIsFloat<T>) {
    std::vector<T> out = {
        of(0), of(-0.0), of(1), of(-1), of(Limits::infinity()), of(-Limits::infinity()), of(Limits::quiet_NaN())};
    if constexpr (kIsNarrowFloat<T>) {
      const uint16_t greatest = DTypeOf<T>::value == DType::f16 ? 0x7bff : 0x7f7f;
      for (const uint16_t bits : {greatest, static_cast<uint16_t>(greatest | 0x8000U), uint16_t{1}, uint16_t{0x8001}}) {
        T value;
        value.bits = bits;
        out.push_back(value);
      }
    } else {
      for (const T value : {Limits::max(), Limits::lowest(), Limits::denorm_min(), -Limits::denorm_min()})
        out.push_back(value);
    }
    return out;
  } else if constexpr (std::is_same_v<T, bool>) {
    return {false, true};
  } else {
    std::vector<T> out = {0, 1, Limits::lowest(), Limits::max()};
    if (std::is_signed_v<T>) out.push_back(static_cast<T>(-1));
    if (sizeof(T) == 8) out.push_back(static_cast<T>((int64_t{1} << 53) + 1));
    return out;
  }
}

/// The elements' bits, so that NaN equals itself and 0 is not -0.
template <typename T>
std::vector<uint64_t> bits_of(const Tensor& tensor) {
  std::vector<uint64_t> out;
  for (int64_t k = 0; k < tensor.elems(); ++k) {
    out.push_back(0);
    std::memcpy(&out.back(), tensor.data() + k * static_cast<int64_t>(sizeof(T)), sizeof(T));
  }
  return out;
}

}  // namespace hetnn
