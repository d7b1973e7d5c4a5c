// Elements of one type to another, many at once: a loop for each two types, and for each only one.
#include "hetnn/base/convert.h"

namespace hetnn {
namespace {

// A fixed number at a time, which makes whole vectors of every type.
constexpr int64_t kTogether = 16;

template <typename From, typename To>
void convert_row(const std::byte* x, std::byte* y, int64_t count) {
  const auto* __restrict from = reinterpret_cast<const From*>(x);
  auto* __restrict to = reinterpret_cast<To*>(y);
  for (; count >= kTogether; count -= kTogether, from += kTogether, to += kTogether)
    for (int64_t k = 0; k < kTogether; ++k) to[k] = convert<To>(from[k]);
  for (int64_t k = 0; k < count; ++k) to[k] = convert<To>(from[k]);
}

}  // namespace

ConvertElements::ConvertElements(DType from, DType to) {
  visit_dtype(from, [&](auto x) { visit_dtype(to, [&](auto y) { row_ = convert_row<decltype(x), decltype(y)>; }); });
}

}  // namespace hetnn
