// grouped_matmul: groups of rows, each times a matrix of its own.
#include "hetnn/ops/infer.h"
#include "hetnn/ops/product.h"
#include "hetnn/ops/scatter/elements.h"

namespace hetnn::ops {
namespace {

std::vector<Type> infer(const Call& call) {
  const Type &x = call.input(0), &w = call.input(1), &ends = call.input(2);
  if (x.dtype != w.dtype && !takes_weight(x, w)) {
    fail(call, "grouped_matmul_c1",
         text("x and weights must have one element type, or the weights of an f32 x f16 or bf16; got ",
              dtype_name(x.dtype), " and ", dtype_name(w.dtype), ". Cast one of them."));
  }
  if (x.rank() != 2 || w.rank() != 3 || x.shape[1] != w.shape[1]) {
    fail(call, "grouped_matmul_c2",
         text("x must be [M,K] and the weights [E,K,N]; got ", to_string(x.shape), " and ", to_string(w.shape),
              ". Check the dimension they share."));
  }
  if (!holds_indices(ends) || ends.shape != Shape{w.shape[0]}) {
    fail(call, "grouped_matmul_c3",
         text("ends must be i64 or i32, one for each of the ", w.shape[0], " weights; got ", to_string(ends), "."));
  }
  return {{x.dtype, {x.shape[0], w.shape[2]}}};
}

void check(const Call& call, std::span<const View> inputs) {
  if (!inputs[2].data) return;
  int64_t begin = 0;
  for (const int64_t end : values_as<int64_t>(inputs[2])) {
    if (end < begin || end > inputs[0].shape[0]) {
      fail(call, "grouped_matmul_c4",
           text("its groups must end one behind the other, at most at row ", inputs[0].shape[0], "; one from row ",
                begin, " on ends at ", end, "."));
    }
    begin = end;
  }
}

void meaning(const Evaluation& e) {
  const View &x = e.input(0), &w = e.input(1);
  const Result y = e.output();
  const std::vector<int64_t> ends = values_as<int64_t>(e.input(2));
  const int64_t k = x.shape[1], n = w.shape[2];
  visit_wide(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::fill_n(y.values<T>(), y.elems(), T(0));
    int64_t begin = 0;
    for (size_t group = 0; group < ends.size(); ++group) {
      T* to = y.values<T>() + begin * n;
      multiply<T>(ends[group] - begin, n, k, {x.values<T>().data() + begin * k, k, 1},
                  {w.values<T>().data() + static_cast<int64_t>(group) * k * n, n, 1}, {}, to);
      begin = ends[group];
    }
  });
}

Work work(const Call& call) { return {.macs = elements(call.output().shape) * call.input(0).shape[1]}; }

}  // namespace

OpDef define_grouped_matmul() {
  return {
      .name = "grouped_matmul",
      .doc = "Groups of rows, each times a matrix of its own, as experts have them; rows behind the last group are 0.",
      .inputs = {{"x", "[M,K], group by group"},
                 {"weights", "[E,K,N]"},
                 {"ends", "[E], i64 or i32: the row behind the last of each group"}},
      .attrs = {},
      .traits = Trait::compute | Trait::wide,
      .infer = infer,
      .check = check,
      .meaning = meaning,
      .work = work,
      .constraints = {},
      .tolerance = 1e-5,
      .samples = {"grouped_matmul(f32[5,3], f32[2,3,4], i64[2] {2, 5})",
                  "grouped_matmul(f32[9,20], f32[3,20,33], i32[3] {4, 4, 8})",
                  "grouped_matmul(f32[9,21], bf16[3,21,33], i32[3] {4, 4, 8})"}};
}

}  // namespace hetnn::ops
