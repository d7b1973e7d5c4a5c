// Attributes of calls: named, typed, immutable facts known at compile time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/base/dtype.h"
#include "hetnn/base/tensor.h"

namespace hetnn::ops {

/// Integers are dims, so that a size may be an expression of the model's symbols.
using Attr = std::variant<bool, Dim, double, std::string, DType, std::vector<Dim>, std::vector<double>, Tensor>;

/// The alternatives of Attr, in its order.
enum class AttrKind : uint8_t { boolean, integer, real, string, dtype, integers, reals, tensor };

std::string_view attr_kind_name(AttrKind kind);
inline AttrKind attr_kind(const Attr& attr) { return static_cast<AttrKind>(attr.index()); }

using Attrs = std::map<std::string, Attr, std::less<>>;

/// Bitwise equality (a NaN equals the same NaN), so that graphs can be compared and deduplicated.
bool same(const Attr& a, const Attr& b);
bool same(const Attrs& a, const Attrs& b);

}  // namespace hetnn::ops
