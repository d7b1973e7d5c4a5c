// linear: y = x * weight^T + bias over the last axis.
#include <algorithm>
#include <cmath>
#include <limits>

#include "hetnn/ops/evaluate.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/kernel_use.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &w = call.input(1);
  if (x.dtype != w.dtype) {
    fail(call, "linear_c1",
             text("input and weight must have one element type; got ", dtype_name(x.dtype), " and ",
                  dtype_name(w.dtype), ". Cast one of them."));
  }
  if (x.shape.empty() || w.shape.size() != 2 || x.shape.back() != w.shape[1]) {
    fail(call, "linear_c2",
             text("weight must be [N,K] with K the input's last dimension; got weight ", to_string(w.shape),
                  " with input ", to_string(x.shape), ". Check the input's features."));
  }
  if (call.has(2) && call.input(2).shape != Shape{w.shape[0]}) {
    fail(call, "linear_c3",
             text("bias must be ", to_string(Shape{w.shape[0]}), "; got ", to_string(call.input(2).shape), "."));
  }
  Shape y = x.shape;
  y.back() = w.shape[0];
  return {{x.dtype, y}};
}

std::vector<Tensor> evaluate(const Evaluation& e) {
  const Tensor &x = e.input(0), &w = e.input(1);
  const int64_t n = w.shape()[0], k = w.shape()[1],
                rows = k == 0 ? elements(e.call.output().shape).evaluate(e.bindings) / std::max<int64_t>(n, 1)
                              : x.elems() / k;
  std::byte* data = nullptr;
  Tensor y = Tensor::zeros(x.dtype(), e.output_shape(), &data);
  visit_dtype(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto xv = x.values<T>(), wv = w.values<T>();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = e.has(2) ? static_cast<double>(e.input(2).values<T>()[static_cast<size_t>(j)]) : 0;
        for (int64_t c = 0; c < k; ++c)
          sum += static_cast<double>(xv[static_cast<size_t>(i * k + c)]) *
                 static_cast<double>(wv[static_cast<size_t>(j * k + c)]);
        mutable_values<T>(data)[i * n + j] = static_cast<T>(sum);
      }
    }
  });
  return {y};
}

Work work(const Call& call) {
  return {.macs = elements(call.output().shape) * call.input(1).shape[1],
          .flops = call.has(2) ? elements(call.output().shape) : Dim(0)};
}

std::vector<Metric> metrics(const Call& call) {
  const Shape& w = call.input(1).shape;
  return {{"features", w[1]}, {"filters", w[0]}};
}

}  // namespace

OpDef define_linear() {
  return {.name = "linear",
          .doc = "Matrix product with a weight: y[...,n] = bias[n] + sum over k of x[...,k] * weight[n,k].",
          .inputs = {{"x", "[...,K]"}, {"weight", "[N,K]"}, {"bias", "[N]", true}},
          .attrs = {},
          .traits = static_cast<uint32_t>(Trait::compute),
          .torch = {{"aten.linear.default", "x weight bias"}},
          .onnx = {},
          .infer = infer,
          .evaluate = evaluate,
          .work = work,
          .metrics = metrics,
          .constraints = {constant_weights("linear_npu_c1")},
          .kernel =
              [](const Call& call) {
                return KernelUse{.kernel = "linear",
                                     .params = {{"bias", Dim(call.has(2))}},
                                     .layout = KernelUse::Layout::plain,
                                     .takes_steps = true};
              },
          .tolerance = 1e-5,
          .samples = {"linear(f32[3,5], f32[7,5] , f32[7])", "linear(f32[2,n,6], f32[4,6], _)"}};
}

}  // namespace hetnn::ops
