// Element types: names, sizes and C++ counterparts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hetnn {

enum class DType : uint8_t { f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean };

inline constexpr DType kAllDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                                       DType::u8,  DType::i16, DType::i32, DType::i64,  DType::boolean};

/// Name used in text, JSON and Python: f32, f64, f16, bf16, i8, u8, i16, i32, i64, bool.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

int64_t dtype_bytes(DType dtype);
bool is_float(DType dtype);
bool is_integer(DType dtype);  // bool is not an integer

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};

}  // namespace hetnn
