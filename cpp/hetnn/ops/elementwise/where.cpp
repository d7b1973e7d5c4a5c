// where: one of two values by a condition.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &c = call.input(0), &a = call.input(1), &b = call.input(2);
  if (c.dtype != DType::boolean || a.dtype != b.dtype) {
    fail(call, "where_c1",
             text("the condition must be bool and both choices of one type; got ", to_string(c), ", ",
                  to_string(a), " and ", to_string(b), "."));
  }
  auto shape = broadcast(a.shape, b.shape);
  if (shape) shape = broadcast(*shape, c.shape);
  if (!shape)
    fail(call, "where_c2",
             text("its inputs must broadcast; got ", to_string(c.shape), ", ", to_string(a.shape), " and ",
                  to_string(b.shape), "."));
  return {{a.dtype, *shape}};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const std::vector<int64_t> shape = e.output_shape();
  auto full = [&](size_t k) {
    return gather_strided(e.input(k), shape, 0, broadcast_strides(e.input(k).shape(), shape));
  };
  const Tensor c = full(0), a = full(1), b = full(2);
  const int64_t size = dtype_bytes(a.dtype());
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(a.dtype(), shape, &data);
  for (int64_t k = 0; k < y.elems(); ++k)
    std::copy_n((c.values<bool>()[static_cast<size_t>(k)] ? a : b).data() + k * size, size, data + k * size);
  return {y};
}

}  // namespace

OpDef define_where() {
  return {.name = "where",
          .doc = "y = a where the condition holds, else b.",
          .inputs = {{"condition", "bool"}, {"a", "broadcasts"}, {"b", "broadcasts"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::elementwise),
          .torch = {},
          .onnx = {"Where"},
          .infer = infer,
          .evaluate = evaluate,
          .constraints = {},
          .kernel = named_kernel("where", {}),
          .tolerance = 0,
          .samples = {"where(bool[2,3], f32[2,3], f32[1])", "where(bool[n,1], i64[4], i64[n,4])"}};
}

}  // namespace hetnn::ops
