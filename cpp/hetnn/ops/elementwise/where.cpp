// where: one of two values by a condition.
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &c = call.input(0), &a = call.input(1), &b = call.input(2);
  if (c.dtype != DType::boolean || a.dtype != b.dtype) {
    fail(call, "where_c1",
         text("the condition must be bool and both choices of one type; got ", to_string(c), ", ", to_string(a),
              " and ", to_string(b), "."));
  }
  auto shape = broadcast(a.shape, b.shape);
  if (shape) shape = broadcast(*shape, c.shape);
  if (!shape)
    fail(call, "where_c2",
         text("its inputs must broadcast; got ", to_string(c.shape), ", ", to_string(a.shape), " and ",
              to_string(b.shape), "."));
  return {{a.dtype, *shape}};
}

void evaluate_where(const Evaluation& e) {
  const View &condition = e.input(0), &a = e.input(1), &b = e.input(2);
  const Result y = e.output();
  const bool* holds = condition.values<bool>().data();
  visit_width(y.dtype, [&](auto zero) {
    using U = decltype(zero);
    const auto *va = reinterpret_cast<const U*>(a.data), *vb = reinterpret_cast<const U*>(b.data);
    auto* to = reinterpret_cast<U*>(y.data);
    nest<4>(y.shape,
            {strides_of(y.shape), broadcast_strides(condition.shape, y.shape), broadcast_strides(a.shape, y.shape),
             broadcast_strides(b.shape, y.shape)},
            [=](int64_t at, int64_t c, int64_t left, int64_t right) { to[at] = holds[c] ? va[left] : vb[right]; });
  });
}

}  // namespace

OpDef define_where() {
  return {.name = "where",
          .doc = "y = a where the condition holds, else b.",
          .inputs = {{"condition", "bool"}, {"a", "broadcasts"}, {"b", "broadcasts"}},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {},
          .onnx = {{"Where", 9, "condition a b"}},
          .infer = infer,
          .meaning = evaluate_where,
          .tolerance = 0,
          .samples = {"where(bool[2,3], f32[2,3], f32[1])", "where(bool[n,1], i64[4], i64[n,4])"}};
}

}  // namespace hetnn::ops
