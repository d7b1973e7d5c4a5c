// What the fronts' formats call element types.
#pragma once

#include <string_view>

#include "hetnn/base/dtype.h"

namespace hetnn {

/// Of one type, from the table; empty where a format lacks it.
struct DTypeNames {
  std::string_view torch;   // of torch itself
  std::string_view onnx;    // of TensorProto.DataType
  std::string_view tflite;  // of the schema's TensorType
  std::string_view c;       // of hetnn_dtype
};
const DTypeNames& dtype_names(DType dtype);

}  // namespace hetnn
