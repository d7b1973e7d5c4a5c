// Table of element types.
#include "hetnn/base/dtype.h"

#include <array>

namespace hetnn {
namespace {

struct Row {
  std::string_view name;
  int8_t bytes;
  bool floating;
};

constexpr std::array<Row, 10> kRows = {{{"f32", 4, true},
                                        {"f64", 8, true},
                                        {"f16", 2, true},
                                        {"bf16", 2, true},
                                        {"i8", 1, false},
                                        {"u8", 1, false},
                                        {"i16", 2, false},
                                        {"i32", 4, false},
                                        {"i64", 8, false},
                                        {"bool", 1, false}}};

const Row& row(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view dtype_name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (DType dtype : kAllDTypes) {
    if (row(dtype).name == name) return dtype;
  }
  return std::nullopt;
}

int64_t dtype_bytes(DType dtype) { return row(dtype).bytes; }
bool is_float(DType dtype) { return row(dtype).floating; }
bool is_integer(DType dtype) { return !row(dtype).floating && dtype != DType::boolean; }

}  // namespace hetnn
