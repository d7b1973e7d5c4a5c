// What the C interface's opaque pointers point to.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/capi/hetnn.h"
#include "hetnn/runtime/executable.h"

namespace hetnn::capi {

#define HETNN_COMPUTED(dtype, name, type, kind, numpy, kserve, c, ...) \
  static_assert(static_cast<int>(DType::dtype) == c);
#define HETNN_STORED(dtype, name, numpy, c, ...) static_assert(static_cast<int>(DType::dtype) == c);
#include "hetnn/base/dtypes.inc"
#undef HETNN_COMPUTED
#undef HETNN_STORED
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
