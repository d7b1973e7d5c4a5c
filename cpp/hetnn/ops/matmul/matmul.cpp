// matmul: batched matrix product of two computed tensors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &a = call.input(0), &b = call.input(1);
  if (a.dtype != b.dtype) {
    fail(call, "matmul_c1",
             text("its inputs must have one element type; got ", dtype_name(a.dtype), " and ", dtype_name(b.dtype),
                  ". Cast one of them."));
  }
  if (a.shape.size() < 2 || b.shape.size() < 2 || a.shape.back() != b.shape[b.shape.size() - 2]) {
    fail(call, "matmul_c2",
             text("its inputs must be [...,M,K] and [...,K,N]; got ", to_string(a.shape), " and ", to_string(b.shape),
                  ". Check the dimension they share."));
  }
  const auto batch = broadcast(Shape(a.shape.begin(), a.shape.end() - 2), Shape(b.shape.begin(), b.shape.end() - 2));
  if (!batch) {
    fail(call, "matmul_c3",
             text("the leading dimensions must broadcast; got ", to_string(a.shape), " and ", to_string(b.shape), "."));
  }
  Shape y = *batch;
  y.push_back(a.shape[a.shape.size() - 2]);
  y.push_back(b.shape.back());
  return {{a.dtype, y}};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor &a = e.input(0), &b = e.input(1);
  const std::vector<int64_t> out = e.output_shape();
  const size_t rank = out.size();
  const int64_t m = out[rank - 2], n = out[rank - 1], k = a.shape().back();
  const std::vector<int64_t> batch(out.begin(), out.end() - 2);
  std::vector<int64_t> batch_a(a.shape().begin(), a.shape().end() - 2), batch_b(b.shape().begin(), b.shape().end() - 2);
  const auto sa = broadcast_strides(batch_a, batch), sb = broadcast_strides(batch_b, batch);
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(a.dtype(), out, &data);
  visit_dtype(a.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto av = a.values<T>(), bv = b.values<T>();
    T* to = mutable_values<T>(data);
    for_each_index(batch, [&](const std::vector<int64_t>& at) {
      int64_t ia = 0, ib = 0;
      for (size_t d = 0; d < at.size(); ++d) ia += at[d] * sa[d], ib += at[d] * sb[d];
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t c = 0; c < k; ++c) {
            sum += static_cast<double>(av[static_cast<size_t>((ia * m + i) * k + c)]) *
                   static_cast<double>(bv[static_cast<size_t>((ib * k + c) * n + j)]);
          }
          *to++ = static_cast<T>(sum);
        }
      }
    });
  });
  return {y};
}

Work work(const Call& call) {
  return {.macs = elements(call.output().shape) * call.input(0).shape.back()};
}

}  // namespace

OpDef define_matmul() {
  return {.name = "matmul",
          .doc = "Batched matrix product with broadcasting of the leading dimensions: y = a * b.",
          .inputs = {{"a", "[...,M,K]"}, {"b", "[...,K,N]"}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::compute),
          .torch = {{"aten.mm.default", "a b"}, {"aten.bmm.default", "a b"}},
          .onnx = {},
          .infer = infer,
          .evaluate = evaluate,
          .work = work,
          .constraints = {},
          .kernel = named_kernel("matmul", {}, KernelUse::Layout::plain, true),
          .tolerance = 1e-5,
          .samples = {"matmul(f32[3,5], f32[5,4])", "matmul(f32[2,3,n,5], f32[3,5,4])"}};
}

}  // namespace hetnn::ops
