// From a run-time element type to a C++ type.
#pragma once

#include <cstdint>
#include <string_view>

#include "hetnn/base/dtype.h"
#include "hetnn/base/error.h"

namespace hetnn::kernels {

template <typename T>
struct TypeTag {
  using type = T;
};

/// Calls f(TypeTag<T>) with the C++ type of `dtype`; throws Unsupported for f16 and bf16. `what` names kernel and
/// operand.
template <typename F>
decltype(auto) dispatch_dtype(DType dtype, std::string_view what, F f) {
  switch (dtype) {
    case DType::f32:
      return f(TypeTag<float>());
    case DType::f64:
      return f(TypeTag<double>());
    case DType::i8:
      return f(TypeTag<int8_t>());
    case DType::u8:
      return f(TypeTag<uint8_t>());
    case DType::i16:
      return f(TypeTag<int16_t>());
    case DType::i32:
      return f(TypeTag<int32_t>());
    case DType::i64:
      return f(TypeTag<int64_t>());
    case DType::boolean:
      return f(TypeTag<bool>());
    default:
      throw Unsupported(
          text(what, " has dtype ", dtype_name(dtype), ", which has no arithmetic on the CPU. Insert a cast."));
  }
}

/// Calls f(TypeTag<U>) with an unsigned integer as wide as the element, for kernels that only move elements.
template <typename F>
decltype(auto) dispatch_width(DType dtype, F f) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return f(TypeTag<uint8_t>());
    case 2:
      return f(TypeTag<uint16_t>());
    case 4:
      return f(TypeTag<uint32_t>());
    default:
      return f(TypeTag<uint64_t>());
  }
}

}  // namespace hetnn::kernels
