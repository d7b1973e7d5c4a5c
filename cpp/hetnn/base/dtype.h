// Element types, from their table: names, sizes and C++ counterparts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hetnn {

enum class DType : uint8_t {
#define HETNN_COMPUTED(dtype, name, type, kind, numpy, kserve, c, ...) dtype,
#define HETNN_STORED(dtype, name, numpy, c, ...) dtype,
#include "hetnn/base/dtypes.inc"
#undef HETNN_COMPUTED
#undef HETNN_STORED
};

/// What is computed in, in the order of the enumeration.
inline constexpr DType kComputedDTypes[] = {
#define HETNN_COMPUTED(dtype, name, type, kind, numpy, kserve, c, ...) DType::dtype,
#define HETNN_STORED(dtype, name, numpy, c, ...)
#include "hetnn/base/dtypes.inc"
#undef HETNN_COMPUTED
#undef HETNN_STORED
};
/// All, likewise.
inline constexpr DType kAllDTypes[] = {
#define HETNN_COMPUTED(dtype, name, type, kind, numpy, kserve, c, ...) DType::dtype,
#define HETNN_STORED(dtype, name, numpy, c, ...) DType::dtype,
#include "hetnn/base/dtypes.inc"
#undef HETNN_COMPUTED
#undef HETNN_STORED
};

/// Name used in text, JSON and Python.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
/// What numpy calls the type, or ml_dtypes where numpy lacks it.
const char* numpy_name(DType dtype);
/// What KServe's protocol calls the type; empty for one that it lacks.
std::string_view kserve_name(DType dtype);

int64_t dtype_bytes(DType dtype);
/// Whether nothing computes in the type: operators move its values, and casts read and write them.
bool is_stored(DType dtype);
bool is_float(DType dtype);    // stored ones are not
bool is_integer(DType dtype);  // bool and stored ones are not

template <DType kDType>
struct NarrowFloat;
using Float16 = NarrowFloat<DType::f16>;
using BFloat16 = NarrowFloat<DType::bf16>;

template <typename T>
struct DTypeOf;
#define HETNN_COMPUTED(dtype, name, type, kind, numpy, kserve, c, ...) \
  template <>                                                          \
  struct DTypeOf<type> {                                               \
    static constexpr DType value = DType::dtype;                       \
  };
#define HETNN_STORED(dtype, name, numpy, c, ...)
#include "hetnn/base/dtypes.inc"
#undef HETNN_COMPUTED
#undef HETNN_STORED

}  // namespace hetnn
