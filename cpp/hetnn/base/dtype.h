// Element types: names, sizes and C++ counterparts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hetnn {

enum class DType : uint8_t {
  // what is computed in
  f32,
  f64,
  f16,
  bf16,
  i8,
  u8,
  i16,
  i32,
  i64,
  boolean,
  u16,
  u32,
  u64,
  // what values are only kept in, a byte each (see stored.h)
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f4e2m1,
  i4,
  u4,
  i2,
  u2,
};

/// What is computed in, in the order of the enumeration.
inline constexpr DType kComputedDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                                            DType::u8,  DType::i16, DType::i32, DType::i64,  DType::boolean,
                                            DType::u16, DType::u32, DType::u64};
/// All, likewise.
inline constexpr DType kAllDTypes[] = {
    DType::f32,    DType::f64,      DType::f16,        DType::bf16,    DType::i8,         DType::u8,
    DType::i16,    DType::i32,      DType::i64,        DType::boolean, DType::u16,        DType::u32,
    DType::u64,    DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2,  DType::f8e5m2fnuz, DType::f8e8m0,
    DType::f4e2m1, DType::i4,       DType::u4,         DType::i2,      DType::u2};

/// Name used in text, JSON and Python: that of the enumerator, but `bool`.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

int64_t dtype_bytes(DType dtype);
/// Whether nothing computes in the type: operators move its values, and casts read and write them.
bool is_stored(DType dtype);
bool is_float(DType dtype);    // stored ones are not
bool is_integer(DType dtype);  // bool and stored ones are not

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
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};

}  // namespace hetnn
