// scaled_dot_product_attention: softmax(q k^T scale + mask) v.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

// q [B,H,L,D], k [B,H,S,D], v [B,H,S,E], mask bool (true: attend) or real (added), broadcast to [B,H,L,S].
std::vector<Type> infer(const Call& call) {
  const Type &q = call.input(0), &k = call.input(1), &v = call.input(2);
  if (q.shape.size() != 4 || k.shape.size() != 4 || v.shape.size() != 4 || q.shape[3] != k.shape[3] ||
      k.shape[2] != v.shape[2] || q.shape[0] != k.shape[0] || q.shape[1] != k.shape[1] || k.shape[0] != v.shape[0] ||
      k.shape[1] != v.shape[1]) {
    fail(call, "scaled_dot_product_attention_c1",
             text("q, k and v must be [B,H,L,D], [B,H,S,D] and [B,H,S,E]; got ", to_string(q.shape), ", ",
                  to_string(k.shape), " and ", to_string(v.shape), ". Check heads and sizes."));
  }
  if (call.has(3)) {
    const Shape scores = {q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
    const auto both = broadcast(call.input(3).shape, scores);
    if (!both || *both != scores) {
      fail(call, "scaled_dot_product_attention_c2",
               text("mask must broadcast to ", to_string(scores), "; got ", to_string(call.input(3).shape), "."));
    }
  }
  Shape y = q.shape;
  y[3] = v.shape[3];
  return {{q.dtype, y}};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor &q = e.input(0), &k = e.input(1), &v = e.input(2);
  const int64_t heads = q.shape()[0] * q.shape()[1], rows = q.shape()[2], depth = q.shape()[3], keys = k.shape()[2],
                width = v.shape()[3];
  const double given = e.call.real("scale"), scale = given > 0 ? given : 1 / std::sqrt(static_cast<double>(depth));
  const bool causal = e.call.flag("is_causal");
  Tensor mask;
  if (e.has(3)) {
    const std::vector<int64_t> shape = {q.shape()[0], q.shape()[1], rows, keys};
    mask = gather_strided(e.input(3), shape, 0, broadcast_strides(e.input(3).shape(), shape));
  }
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(q.dtype(), e.output_shape(), &data);
  visit_dtype(q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto qv = q.values<T>(), kv = k.values<T>(), vv = v.values<T>();
    auto masked = [&](int64_t at) {
      if (!e.has(3)) return 0.0;
      if (mask.dtype() == DType::boolean)
        return mask.values<bool>()[static_cast<size_t>(at)] ? 0.0 : -std::numeric_limits<double>::infinity();
      return static_cast<double>(mask.values<T>()[static_cast<size_t>(at)]);
    };
    std::vector<double> score(static_cast<size_t>(keys));
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < rows; ++i) {
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t j = 0; j < keys; ++j) {
          double dot = 0;
          for (int64_t c = 0; c < depth; ++c) {
            dot += static_cast<double>(qv[static_cast<size_t>((h * rows + i) * depth + c)]) *
                   static_cast<double>(kv[static_cast<size_t>((h * keys + j) * depth + c)]);
          }
          double& s = score[static_cast<size_t>(j)];
          s = causal && j > i ? -std::numeric_limits<double>::infinity()
                              : dot * scale + masked((h * rows + i) * keys + j);
          largest = std::max(largest, s);
        }
        // A row with every key masked gives zeros.
        for (double& s : score) sum += s = std::isinf(largest) ? 0 : std::exp(s - largest);
        for (int64_t c = 0; c < width; ++c) {
          double out = 0;
          for (int64_t j = 0; j < keys; ++j)
            out += score[static_cast<size_t>(j)] *
                   static_cast<double>(vv[static_cast<size_t>((h * keys + j) * width + c)]);
          mutable_values<T>(data)[(h * rows + i) * width + c] = static_cast<T>(sum > 0 ? out / sum : 0);
        }
      }
    }
  });
  return {y};
}

}  // namespace

OpDef define_scaled_dot_product_attention() {
  return {
      .name = "scaled_dot_product_attention",
      .doc = "Attention: y = softmax(q * k^T * scale + mask) * v, per image and head.",
      .inputs = {{"q", "[B,H,L,D]"},
                 {"k", "[B,H,S,D]"},
                 {"v", "[B,H,S,E]"},
                 {"mask", "bool or real, broadcasts to [B,H,L,S]", true}},
      .attrs = {{"is_causal", AttrKind::boolean, false, "whether row i attends to keys up to i only"},
                {"scale", AttrKind::real, 0.0, "factor of the scores; 0: 1/sqrt(D)"}},
      .traits = static_cast<uint32_t>(Trait::compute),
      .torch = {},
      .onnx = {},
      .infer = infer,
      .evaluate = evaluate,
      .work =
          [](const Call& call) {
            const Shape &q = call.input(0).shape, &v = call.input(2).shape;
            return Work{.macs = q[0] * q[1] * q[2] * v[2] * (q[3] + v[3])};
          },
      .constraints = {},
      .kernel =
          [](const Call& call) {
            return KernelUse{.kernel = "attention",
                                 .params = {{"causal", Dim(call.flag("is_causal"))},
                                            {"scale", call.real("scale")},
                                            {"mask", Dim(call.has(3))}},
                                 .layout = KernelUse::Layout::plain};
          },
      .tolerance = 1e-5,
      .samples =
          {"scaled_dot_product_attention(f32[2,3,5,8], f32[2,3,7,8], f32[2,3,7,4])",
           "scaled_dot_product_attention(f32[1,2,n,8], f32[1,2,n,8], f32[1,2,n,8], bool[1,1,n,n])",
           "scaled_dot_product_attention(f32[1,2,4,8], f32[1,2,4,8], f32[1,2,4,8]) {is_causal = true, scale = 0.5}"}};
}

}  // namespace hetnn::ops
