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
              static_cast<int>(DType::i64) == HETNN_I64 && static_cast<int>(DType::boolean) == HETNN_BOOL);
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

  explicit hetnn_executable(hetnn::program::Blob image, int threads, const std::string& called);
};

struct hetnn_session {
  std::unique_ptr<hetnn::runtime::Session> states;
};
