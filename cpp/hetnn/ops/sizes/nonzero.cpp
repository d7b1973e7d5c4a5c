// nonzero: where a tensor is not 0.
#include "hetnn/ops/infer.h"
#include "hetnn/ops/sizes.h"

namespace hetnn::ops {
namespace {

// x [S0,...] -> y [count,rank].
std::vector<Type> infer(const Call& call) { return {{DType::i64, {call.integer("count"), Dim(call.input(0).rank())}}}; }

void meaning(const Evaluation& e) {
  const View& x = e.input(0);
  std::vector<int64_t> found;  // positions in row-major order
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto values = x.values<T>();
    for (size_t k = 0; k < values.size(); ++k) {
      if (values[k] != T(0)) found.push_back(static_cast<int64_t>(k));
    }
  });
  const auto count = static_cast<int64_t>(found.size());
  const auto rank = static_cast<size_t>(x.rank());
  define(e, "count", count);
  auto* to = e.output(0, {count, x.rank()}).values<int64_t>();
  for (int64_t at : found) {
    for (size_t axis = rank; axis-- > 0;) {
      to[axis] = at % x.shape[axis];
      at /= x.shape[axis];
    }
    to += rank;
  }
}

}  // namespace

OpDef define_nonzero() {
  return {.name = "nonzero",
          .doc = "The indices of the elements that are not 0, a row each, in row-major order.",
          .inputs = {{"x", "any shape"}},
          .attrs = {found_size("count", "the number of those elements")},
          .traits = static_cast<uint32_t>(Trait::wide),
          .torch = {},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .constraints = {},
          .tolerance = 0,
          .samples = {"nonzero(i32[n,3]) {count = found}", "nonzero(bool[2,3,4]) {count = found}",
                      "nonzero(f32[]) {count = found}"}};
}

}  // namespace hetnn::ops
