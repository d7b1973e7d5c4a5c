// From a run-time element type to a C++ type.
#pragma once

#include <cstdint>
#include <type_traits>

#include "hetnn/base/dtype.h"
#include "hetnn/base/error.h"
#include "hetnn/base/narrow_float.h"

namespace hetnn {

/// f16 or bf16 as an element: holds 16 bits, computes as float, rounds to nearest even when it is made.
template <DType kDType>
struct NarrowFloat {
  uint16_t bits;
  NarrowFloat() = default;
  explicit NarrowFloat(float value) : bits(narrow_float(kDType, value)) {}
  operator float() const { return widen_float(kDType, bits); }  // NOLINT(google-explicit-constructor): exact
};

template <typename T>
inline constexpr bool kIsNarrowFloat = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsNarrowFloat<T>;
/// What elements of type T are computed in: f32 for f16 and bf16, else T itself.
template <typename T>
using Wide = std::conditional_t<kIsNarrowFloat<T>, float, T>;
/// What sums and products of elements of type T are kept in: reals in double, to be rounded once; integers in 64 bits
/// without a sign, which wrap and whose low bits are T's.
template <typename T>
using Sum = std::conditional_t<kIsFloat<T>, double, uint64_t>;

/// Calls f(T{}) with the C++ type of `dtype`, one that is computed in.
template <typename F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
// NOLINTBEGIN(bugprone-macro-parentheses): a type takes none
#define HETNN_COMPUTED(dtype, name, type, kind, numpy, kserve, c, ...) \
  case DType::dtype:                                                   \
    return f(type{});
// NOLINTEND(bugprone-macro-parentheses)
#define HETNN_STORED(dtype, name, numpy, c, ...)
#include "hetnn/base/dtypes.inc"
#undef HETNN_COMPUTED
#undef HETNN_STORED
    default:
      throw InternalError(text("nothing is computed in ", dtype_name(dtype)));
  }
}

/// What the elements of a type that is computed in are converted to by what is not made anew for each type: f16 and
/// bf16 to f32, integers to i64, which wraps back to fewer bits as they do; f32, f64, u64 and bool stay.
inline DType wide_dtype(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return DType::f32;
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::u16:
    case DType::i32:
    case DType::u32:
      return DType::i64;
    default:
      return dtype;
  }
}

/// Calls f(T{}) with the C++ type of `dtype`, a wide one of reals.
template <typename F>
decltype(auto) visit_wide_reals(DType dtype, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  throw InternalError(text("reals are not computed in ", dtype_name(dtype)));
}

/// Calls f(T{}) with the C++ type of `dtype`, a wide one of integers, or bool.
template <typename F>
decltype(auto) visit_wide_integers(DType dtype, F&& f) {
  if (dtype == DType::i64) return f(int64_t{});
  if (dtype == DType::u64) return f(uint64_t{});
  if (dtype == DType::boolean) return f(bool{});
  throw InternalError(text("integers are not computed in ", dtype_name(dtype)));
}

/// Calls f(T{}) with the C++ type of `dtype`, a wide one.
template <typename F>
decltype(auto) visit_wide(DType dtype, F&& f) {
  return is_float(dtype) ? visit_wide_reals(dtype, f) : visit_wide_integers(dtype, f);
}

/// Calls f(U{}) with an unsigned integer as wide as the element, for what only moves elements.
template <typename F>
decltype(auto) visit_width(DType dtype, F&& f) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

}  // namespace hetnn
