// permutation_of_pivots: the order of rows that exchanges one after the other give.
#include <algorithm>
#include <numeric>

#include "hetnn/ops/infer.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type& x = call.input(0);
  if (x.dtype != DType::i32 || x.rank() < 1)
    fail(call, "permutation_of_pivots_c1", text("pivots must be i32, [...,K]; got ", to_string(x), "."));
  Shape y = x.shape;
  y.back() = call.integer("rows");
  return {{DType::i64, y}};
}

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  const Result y = e.output();
  const int64_t steps = x.shape.back(), rows = y.shape.back();
  const auto pivots = x.values<int32_t>();
  for (int64_t k = 0; rows > 0 && k < y.elems() / rows; ++k) {
    int64_t* order = y.values<int64_t>() + k * rows;
    std::iota(order, order + rows, 0);
    for (int64_t row = 0; row < std::min(steps, rows); ++row) {
      const int64_t with = pivots[static_cast<size_t>(k * steps + row)] - 1;
      if (with < 0 || with >= rows)
        fail(e.call, "permutation_of_pivots_c2", text("a pivot must be in [1,", rows, "]; got ", with + 1, "."));
      std::swap(order[row], order[with]);
    }
  }
}

}  // namespace

OpDef define_permutation_of_pivots() {
  return {.name = "permutation_of_pivots",
          .doc = "The order of rows that results from exchanging row k with row pivots[k] - 1, one after the other.",
          .inputs = {{"pivots", "i32, [...,K], from 1"}},
          .attrs = {{"rows", AttrKind::integer, std::nullopt, "how many rows there are"}},
          .infer = infer,
          .meaning = meaning,
          .tolerance = 0,
          .samples = {"permutation_of_pivots(i32[3] {2, 3, 3}) {rows = 4}"}};
}

}  // namespace hetnn::ops
