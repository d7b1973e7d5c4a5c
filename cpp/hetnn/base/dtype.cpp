// Table of element types.
#include "hetnn/base/dtype.h"

#include <array>

namespace hetnn {
namespace {

enum class Kind : uint8_t { real, integer, truth, stored };

struct Row {
  std::string_view name;
  int8_t bytes;
  Kind kind;
};

constexpr std::array<Row, 23> kRows = {
    {{"f32", 4, Kind::real},      {"f64", 8, Kind::real},          {"f16", 2, Kind::real},
     {"bf16", 2, Kind::real},     {"i8", 1, Kind::integer},        {"u8", 1, Kind::integer},
     {"i16", 2, Kind::integer},   {"i32", 4, Kind::integer},       {"i64", 8, Kind::integer},
     {"bool", 1, Kind::truth},    {"u16", 2, Kind::integer},       {"u32", 4, Kind::integer},
     {"u64", 8, Kind::integer},   {"f8e4m3fn", 1, Kind::stored},   {"f8e4m3fnuz", 1, Kind::stored},
     {"f8e5m2", 1, Kind::stored}, {"f8e5m2fnuz", 1, Kind::stored}, {"f8e8m0", 1, Kind::stored},
     {"f4e2m1", 1, Kind::stored}, {"i4", 1, Kind::stored},         {"u4", 1, Kind::stored},
     {"i2", 1, Kind::stored},     {"u2", 1, Kind::stored}}};

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
bool is_stored(DType dtype) { return row(dtype).kind == Kind::stored; }
bool is_float(DType dtype) { return row(dtype).kind == Kind::real; }
bool is_integer(DType dtype) { return row(dtype).kind == Kind::integer; }

}  // namespace hetnn
