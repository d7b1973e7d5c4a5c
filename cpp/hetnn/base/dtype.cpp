// Questions asked of the table of element types.
#include "hetnn/base/dtype.h"

#include "hetnn/base/dtype_names.h"
#include "hetnn/base/visit_dtype.h"

namespace hetnn {
namespace {

enum class Kind : uint8_t { real, integer, truth, stored };

struct Row {
  std::string_view name;
  int64_t bytes;
  Kind kind;
  const char* numpy;
  std::string_view kserve;
  DTypeNames names;
};

constexpr Row kRows[] = {
#define HETNN_COMPUTED(dtype, name, type, kind, numpy, kserve, c, torch, onnx, tflite) \
  {name, sizeof(type), Kind::kind, numpy, kserve, {torch, onnx, tflite, #c}},
#define HETNN_STORED(dtype, name, numpy, c, torch, onnx, tflite, encoding) \
  {name, 1, Kind::stored, numpy, {}, {torch, onnx, tflite, #c}},
#include "hetnn/base/dtypes.inc"
#undef HETNN_COMPUTED
#undef HETNN_STORED
};

const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view dtype_name(DType dtype) { return row(dtype).name; }
const char* numpy_name(DType dtype) { return row(dtype).numpy; }
std::string_view kserve_name(DType dtype) { return row(dtype).kserve; }

const DTypeNames& dtype_names(DType dtype) { return row(dtype).names; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (DType dtype : kAllDTypes) {
    if (row(dtype).name == name) return dtype;
  }
  return std::nullopt;
}

int64_t dtype_bytes(DType dtype) { return row(dtype).bytes; }
bool is_stored(DType dtype) { return row(dtype).kind == Kind::stored; }
bool is_float(DType dtype) { return row(dtype).kind == Kind::real; }
bool is_integer(DType dtype) { return row(dtype).kind == Kind::integer; }

}  // namespace hetnn
