// linear: y = x * weight^T + bias over the last axis.
#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/product.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &w = call.input(1);
  if (!agree(x, w) && !takes_weight(x, w)) {
    fail(call, "linear_c1",
         text("input and weight must have one element type, or the weight of an f32 input f16 or bf16; got ",
              dtype_name(x.dtype), " and ", dtype_name(w.dtype), ". Cast one of them."));
  }
  if (x.shape.empty() || w.shape.size() != 2 || x.shape.back() != w.shape[1]) {
    fail(call, "linear_c2",
         text("weight must be [N,K] with K the input's last dimension; got weight ", to_string(w.shape), " with input ",
              to_string(x.shape), ". Check the input's features."));
  }
  check_parameters(call, 2, 3, {w.shape[0]}, "linear_c3");
  Shape y = x.shape;
  y.back() = w.shape[0];
  return {{x.dtype, y}};
}

void meaning(const Evaluation& e) {
  const View &x = e.input(0), &w = e.input(1);
  const Result y = e.output();
  const int64_t n = w.shape[0], k = w.shape[1], rows = n == 0 ? 0 : y.elems() / n;
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *in = x.values<T>().data(), *weight = w.values<T>().data();
    const T* bias = e.has(2) ? e.input(2).values<T>().data() : nullptr;
    multiply<T>(rows, n, k, {in, k, 1}, {weight, 1, k}, {bias, 0, 1}, y.values<T>());
  });
}

Work work(const Call& call) {
  return {.macs = elements(call.output().shape) * call.input(1).shape[1],
          .flops = call.has(2) ? elements(call.output().shape) : Dim(0)};
}

std::vector<Metric> metrics(const Call& call) {
  const Shape& w = call.input(1).shape;
  return {{"features", w[1]}, {"filters", w[0]}};
}

Constraint one_element_type(std::string_view label) {
  return {"npu", label, "An accelerator multiplies operands of one element type.",
          [](const Call& call) -> std::optional<std::pair<std::string, std::string>> {
            if (agree(call.input(0), call.input(1))) return std::nullopt;
            return std::pair<std::string, std::string>{text("a weight of ", dtype_name(call.input(1).dtype),
                                                            " with an input of ", dtype_name(call.input(0).dtype)),
                                                       "one element type"};
          }};
}

}  // namespace

OpDef define_linear() {
  return {.name = "linear",
          .doc = "Matrix product with a weight: y[...,n] = bias[n] + sum over k of x[...,k] * weight[n,k].",
          .inputs = {{"x", "[...,K]"}, {"weight", "[N,K]"}, {"bias", "[N]", true}},
          .attrs = {},
          .traits = Trait::compute | Trait::wide,
          .primitive = Primitive::convolution,
          .torch = {{"aten.linear.default", "x weight bias"}},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .work = work,
          .metrics = metrics,
          .keeps_batch = keeps_batch_of_first,
          .constraints = {constant_weights("linear_npu_c1"), one_element_type("linear_npu_c2")},
          .tolerance = 1e-5,
          .samples = {"linear(f32[3,5], f32[7,5] , f32[7])", "linear(f32[2,n,6], f32[4,6], _)",
                      "linear(f32[2,3,n,6], f32[4,6], f32[4])", "linear(f32[1,40], bf16[33,40], f32[33])",
                      "linear(f32[3,n,20], f16[20,20], _)"}};
}

}  // namespace hetnn::ops
