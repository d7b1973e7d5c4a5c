// Attention against its meaning.
#include "../kernel_runner.h"
#include "expect_error.h"

namespace hetnn::kernels::testing {
namespace {

struct AttentionSizes {
  int64_t batch, heads, kv_heads, query_length, key_length, dim, value_dim;
};

struct Operands {
  Tensor q, k, v;
};

Operands operands_of(const AttentionSizes& s) {
  return {random_plain({s.batch, s.heads, s.query_length, s.dim}, 1),
          random_plain({s.batch, s.kv_heads, s.key_length, s.dim}, 2),
          random_plain({s.batch, s.kv_heads, s.key_length, s.value_dim}, 3)};
}

// The meaning; keys and values are repeated where several heads share them.
std::vector<double> attention(const AttentionSizes& s, const Operands& o, const std::vector<Tensor>& mask = {},
                              ops::Attrs attrs = {}) {
  const auto repeated = [&](const Tensor& t, int64_t width) {
    const int64_t times = s.heads / s.kv_heads;
    const Tensor apart = plain({s.batch, s.kv_heads, 1, s.key_length, width}, t.values);
    return plain({s.batch, s.heads, s.key_length, width},
                 meaning("expand", {apart}, {{"shape", dims({s.batch, s.kv_heads, times, s.key_length, width})}}));
  };
  std::vector<Tensor> inputs = {o.q, repeated(o.k, s.dim), repeated(o.v, s.value_dim)};
  inputs.insert(inputs.end(), mask.begin(), mask.end());
  return meaning("scaled_dot_product_attention", inputs, std::move(attrs));
}

TEST(Attention, MatchesItsMeaningOverSizes) {
  for (const int64_t lq : {1, 7, 33, 70})
    for (const int64_t lk : {1, 16, 50})
      for (const bool causal : {false, true}) {
        const AttentionSizes s = {2, 3, 3, lq, lk, 20, 9};
        const Operands o = operands_of(s);
        check_kernel("attention", {o.q, o.k, o.v}, {TensorView::plain(DType::f32, std::vector<int64_t>{2, 3, lq, 9})},
                     {{"is_causal", int64_t{causal}}}, {attention(s, o, {}, {{"is_causal", causal}})}, 1e-5,
                     "attention");
        if (HasFatalFailure()) return;
      }
}

TEST(Attention, GroupedQueriesAndScale) {
  const AttentionSizes s = {2, 6, 2, 11, 13, 16, 16};
  const Operands o = operands_of(s);
  check_kernel("attention", {o.q, o.k, o.v}, {TensorView::plain(DType::f32, std::vector<int64_t>{2, 6, 11, 16})},
               {{"scale", 0.3}}, {attention(s, o, {}, {{"scale", 0.3}})}, 1e-5, "grouped");
}

TEST(Attention, MasksAddOrForbid) {
  const AttentionSizes s = {2, 3, 3, 9, 21, 8, 8};
  const Operands o = operands_of(s);
  const TensorView y = TensorView::plain(DType::f32, std::vector<int64_t>{2, 3, 9, 8});
  const Tensor added = random_plain({9, 21}, 4);
  check_kernel("attention", {o.q, o.k, o.v, added}, {y}, {{"mask", int64_t{1}}}, {attention(s, o, {added})}, 1e-5,
               "added mask");
  // Padding of keys per image; the second image forbids all.
  Tensor allowed = plain({2, 1, 1, 21}, std::vector<double>(42), DType::boolean);
  for (size_t j = 0; j < 15; ++j) allowed.values[j] = 1;
  check_kernel("attention", {o.q, o.k, o.v, allowed}, {y}, {{"mask", int64_t{1}}}, {attention(s, o, {allowed})}, 1e-5,
               "bool mask");
}

// One number a row of queries, which stands for all of its keys, and rows of more keys than a vector has lanes.
TEST(Attention, MasksThatAreOneNumberARow) {
  const AttentionSizes s = {2, 2, 2, 31, 37, 8, 8};
  const Operands o = operands_of(s);
  const TensorView y = TensorView::plain(DType::f32, std::vector<int64_t>{2, 2, 31, 8});
  Tensor allowed = plain({2, 1, 31, 1}, random_values(62, 5, 0, 2), DType::boolean);
  for (double& value : allowed.values) value = value < 1 ? 0 : 1;
  for (const Tensor& mask : {random_plain({31, 1}, 4), random_plain({31, 37}, 4), allowed})
    check_kernel("attention", {o.q, o.k, o.v, mask}, {y}, {{"mask", int64_t{1}}}, {attention(s, o, {mask})}, 1e-5,
                 mask.view.dtype == DType::f32 ? "added" : "allowed");
}

TEST(Attention, ReadsHeadsInsideFusedRows) {
  const AttentionSizes s = {2, 3, 3, 10, 10, 8, 8};
  const Operands o = operands_of(s);
  Tensor fused = plain({2, 10, 72}, std::vector<double>(1440));
  std::vector<double> expected(480);
  const auto attended = attention(s, o, {}, {{"is_causal", true}});
  for (size_t b = 0; b < 2; ++b)
    for (size_t h = 0; h < 3; ++h)
      for (size_t l = 0; l < 10; ++l)
        for (size_t d = 0; d < 8; ++d) {
          const size_t from = ((b * 3 + h) * 10 + l) * 8 + d, to = (b * 10 + l) * 72 + h * 8 + d;
          fused.values[to] = o.q.values[from];
          fused.values[to + 24] = o.k.values[from];
          fused.values[to + 48] = o.v.values[from];
          expected[(b * 10 + l) * 24 + h * 8 + d] = attended[from];
        }
  check_kernel("attention", {fused, fused, fused}, {TensorView::plain(DType::f32, std::vector<int64_t>{2, 10, 24})},
               {{"heads", int64_t{3}},
                {"head_dim", int64_t{8}},
                {"k_offset", int64_t{24}},
                {"v_offset", int64_t{48}},
                {"is_causal", int64_t{1}}},
               {expected}, 1e-5, "fused rows");
}

TEST(Attention, NamesOffsetsThatExceedTheRow) {
  const Tensor fused = random_plain({1, 4, 24}, 1);
  EXPECT_ERROR(
      run_kernel("attention", {fused, fused, fused}, {TensorView::plain(DType::f32, std::vector<int64_t>{1, 4, 16})},
                 {{"heads", int64_t{2}}, {"head_dim", int64_t{8}}, {"v_offset", int64_t{16}}}),
      Unsupported, "attention takes operands of one batch that hold their heads", "v [1,4,24] plain from element 16");
}

}  // namespace
}  // namespace hetnn::kernels::testing
