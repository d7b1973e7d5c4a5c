// What the C interface's opaque pointers point to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/capi/hetnn.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::capi {

static_assert(static_cast<int>(DType::f32) == HETNN_F32 && static_cast<int>(DType::f64) == HETNN_F64 &&
              static_cast<int>(DType::f16) == HETNN_F16 && static_cast<int>(DType::bf16) == HETNN_BF16 &&
              static_cast<int>(DType::i8) == HETNN_I8 && static_cast<int>(DType::u8) == HETNN_U8 &&
              static_cast<int>(DType::i16) == HETNN_I16 && static_cast<int>(DType::i32) == HETNN_I32 &&
              static_cast<int>(DType::i64) == HETNN_I64 && static_cast<int>(DType::boolean) == HETNN_BOOL &&
              static_cast<int>(DType::u16) == HETNN_U16 && static_cast<int>(DType::u32) == HETNN_U32 &&
              static_cast<int>(DType::u64) == HETNN_U64);
static_assert(static_cast<int>(DType::f8e4m3fn) == HETNN_F8E4M3FN &&
              static_cast<int>(DType::f8e4m3fnuz) == HETNN_F8E4M3FNUZ &&
              static_cast<int>(DType::f8e5m2) == HETNN_F8E5M2 &&
              static_cast<int>(DType::f8e5m2fnuz) == HETNN_F8E5M2FNUZ &&
              static_cast<int>(DType::f8e8m0) == HETNN_F8E8M0 && static_cast<int>(DType::f4e2m1) == HETNN_F4E2M1 &&
              static_cast<int>(DType::i4) == HETNN_I4 && static_cast<int>(DType::u4) == HETNN_U4 &&
              static_cast<int>(DType::i2) == HETNN_I2 && static_cast<int>(DType::u2) == HETNN_U2);
inline hetnn_dtype c_dtype(DType dtype) { return static_cast<hetnn_dtype>(dtype); }

/// A port's own copy of what its C struct points to.
struct Port {
  std::string name;
  std::vector<int64_t> dims;  // -1: varies
  DType dtype = DType::f32;

  hetnn_port row() const {
    return {sizeof(hetnn_port), name.c_str(), c_dtype(dtype), static_cast<int32_t>(dims.size()), dims.data()};
  }
};

/// Of a program's buffer; dims that are expressions are -1.
Port port_of(const std::string& name, const program::Buffer& buffer);

}  // namespace hetnn::capi

struct hetnn_executable {
  hetnn::runtime::Executable runtime;
  std::vector<hetnn::capi::Port> inputs, outputs;

  /// Of a program or its image.
  template <typename From>
  hetnn_executable(From from, int threads, const std::string& called) : runtime(std::move(from), threads, called) {
    name_ports();
  }

 private:
  void name_ports();
};

struct hetnn_session {
  std::unique_ptr<hetnn::runtime::Session> states;
};
