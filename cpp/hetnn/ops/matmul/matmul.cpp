// matmul: batched matrix product of two computed tensors.
#include "hetnn/ops/batch.h"
#include "hetnn/ops/infer.h"
#include "hetnn/ops/nest.h"
#include "hetnn/ops/product.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &a = call.input(0), &b = call.input(1);
  if (!agree(a, b)) {
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

void meaning(const Evaluation& e) {
  const View &a = e.input(0), &b = e.input(1);
  const Result y = e.output();
  const size_t axes = y.shape.size() - 2;  // of the batch
  const int64_t m = y.shape[axes], n = y.shape[axes + 1], k = a.shape.back();
  const std::vector<int64_t> batch(y.shape.begin(), y.shape.end() - 2);
  visit_wide(a.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *left = a.values<T>().data(), *right = b.values<T>().data();
    const auto strides = [&](const View& of) { return broadcast_strides(of.shape.first(of.shape.size() - 2), batch); };
    nest<3>(batch, {strides_of(batch), strides(a), strides(b)}, [&](int64_t at, int64_t from_a, int64_t from_b) {
      T* to = y.values<T>() + at * m * n;
      multiply<T>(m, n, k, {left + from_a * m * k, k, 1}, {right + from_b * k * n, n, 1}, {}, to);
    });
  });
}

Work work(const Call& call) { return {.macs = elements(call.output().shape) * call.input(0).shape.back()}; }

}  // namespace

OpDef define_matmul() {
  return {.name = "matmul",
          .doc = "Batched matrix product with broadcasting of the leading dimensions: y = a * b.",
          .inputs = {{"a", "[...,M,K]"}, {"b", "[...,K,N]"}},
          .attrs = {},
          .traits = Trait::compute | Trait::wide,
          .primitive = Primitive::product,
          .torch = {{"aten.mm.default", "a b"}, {"aten.bmm.default", "a b"}},
          .onnx = {},
          .infer = infer,
          .meaning = meaning,
          .work = work,
          .keeps_batch =
              [](const Call& call, Batched batched) {
                // Along axis 0 of a matrix b are what is summed.
                return keeps_batch_of_all(call, batched) && (!batched[1] || call.input(1).rank() > 2);
              },
          .constraints = {},
          .tolerance = 1e-5,
          .samples = {"matmul(f32[3,5], f32[5,4])", "matmul(f32[2,3,n,5], f32[3,5,4])",
                      "matmul(f32[2,3,n,5], f32[5,4])", "matmul(f32[2,3,7,5], f32[2,1,5,4])"}};
}

}  // namespace hetnn::ops
