// Attribute kinds and equality.
#include "hetnn/ops/attr.h"

#include <algorithm>
#include <bit>

namespace hetnn::ops {
namespace {

bool same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

}  // namespace

std::string_view attr_kind_name(AttrKind kind) {
  constexpr std::string_view kNames[] = {"bool", "integer", "real", "string", "dtype", "integers", "reals", "tensor"};
  return kNames[static_cast<size_t>(kind)];
}

bool same(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (auto* x = std::get_if<double>(&a)) return same_bits(*x, std::get<double>(b));
  if (auto* x = std::get_if<std::vector<double>>(&a)) {
    const auto& y = std::get<std::vector<double>>(b);
    return std::equal(x->begin(), x->end(), y.begin(), y.end(), same_bits);
  }
  return a == b;
}

bool same(const Attrs& a, const Attrs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); });
}

}  // namespace hetnn::ops
