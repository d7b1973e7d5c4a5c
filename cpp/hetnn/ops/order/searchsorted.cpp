// searchsorted: where values would have to stand in a sorted row.
#include <algorithm>

#include "hetnn/ops/order/order.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &row = call.input(0), &values = call.input(1);
  const bool one = row.rank() == 1;
  bool fits = row.rank() >= 1 && (one || row.rank() == values.rank()) && row.dtype == values.dtype;
  for (int k = 0; fits && !one && k + 1 < row.rank(); ++k)
    fits = row.shape[static_cast<size_t>(k)] == values.shape[static_cast<size_t>(k)];
  if (!fits) {
    fail(call, "searchsorted_c1",
         text("the rows must be one, or one for each row of the values, and of their type; got rows ", to_string(row),
              " and values ", to_string(values), "."));
  }
  return {{DType::i64, values.shape}};
}

void meaning(const Evaluation& e) {
  const View &rows = e.input(0), &values = e.input(1);
  auto* to = e.output().values<int64_t>();
  const int64_t size = rows.shape.back();
  const int64_t width =
      rows.rank() == 1 ? std::max<int64_t>(values.elems(), 1) : std::max<int64_t>(values.shape.back(), 1);
  const bool right = e.call.flag("right");
  visit_wide(values.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *row = rows.values<T>().data(), *wanted = values.values<T>().data();
    const auto before = [](T a, T b) { return less<T>(a, b); };
    for (int64_t k = 0; k < values.elems(); ++k) {
      const T* begin = row + k / width * (rows.rank() == 1 ? 0 : size);
      const T value = wanted[k];
      to[k] = (right ? std::upper_bound(begin, begin + size, value, before)
                     : std::lower_bound(begin, begin + size, value, before)) -
              begin;
    }
  });
}

}  // namespace

OpDef define_searchsorted() {
  return {.name = "searchsorted",
          .doc = "How many elements of a sorted row are smaller than each value; NaN is the largest.",
          .inputs = {{"sorted", "one row, or the values' shape but for the last axis"}, {"values", "any shape"}},
          .attrs = {{"right", AttrKind::boolean, false, "how many are smaller or equal"}},
          .traits = static_cast<uint32_t>(Trait::wide),
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"searchsorted(f32[4] {-1, 0, 1, 2}, f32[])", "searchsorted(f32[4] {-1, 0, 1, 2}, f32[2,3])",
                      "searchsorted(i64[2,2] {1, 2, 3, 3}, i64[2,3]) {right = true}"}};
}

}  // namespace hetnn::ops
