// Attention against plain loops.
#include "../kernel_runner.h"
#include "hetnn/kernels/attention/reference.h"

namespace hetnn::kernels::testing {
namespace {

using reference::AttentionSizes;

struct Operands {
  Tensor q, k, v;
};

Operands operands_of(const AttentionSizes& s) {
  return {random_plain({s.batch, s.heads, s.query_length, s.dim}, 1),
          random_plain({s.batch, s.kv_heads, s.key_length, s.dim}, 2),
          random_plain({s.batch, s.kv_heads, s.key_length, s.value_dim}, 3)};
}

TEST(Attention, MatchesLoopsOverSizes) {
  for (const int64_t lq : {1, 7, 33, 70})
    for (const int64_t lk : {1, 16, 50})
      for (const bool causal : {false, true}) {
        const AttentionSizes s = {2, 3, 3, lq, lk, 20, 9, 1 / std::sqrt(20.0), causal};
        const Operands o = operands_of(s);
        check_kernel("attention", {o.q, o.k, o.v}, {TensorView::plain(DType::f32, std::vector<int64_t>{2, 3, lq, 9})},
                     {{"is_causal", int64_t{causal}}}, {reference::attention(s, o.q.values, o.k.values, o.v.values, {})},
                     1e-5, "attention");
        if (HasFatalFailure()) return;
      }
}

TEST(Attention, GroupedQueriesAndScale) {
  const AttentionSizes s = {2, 6, 2, 11, 13, 16, 16, 0.3, false};
  const Operands o = operands_of(s);
  check_kernel("attention", {o.q, o.k, o.v}, {TensorView::plain(DType::f32, std::vector<int64_t>{2, 6, 11, 16})},
               {{"scale", 0.3}}, {reference::attention(s, o.q.values, o.k.values, o.v.values, {})}, 1e-5, "grouped");
}

TEST(Attention, MasksAddOrForbid) {
  const AttentionSizes s = {2, 3, 3, 9, 21, 8, 8, 1 / std::sqrt(8.0), false};
  const Operands o = operands_of(s);
  const TensorView y = TensorView::plain(DType::f32, std::vector<int64_t>{2, 3, 9, 8});
  const auto spread = [&](const Tensor& mask, auto value) {
    std::vector<double> full;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 3; ++h)
        for (int64_t i = 0; i < 9; ++i)
          for (int64_t j = 0; j < 21; ++j) full.push_back(value(mask, b, h, i, j));
    return full;
  };
  const Tensor added = random_plain({9, 21}, 4);
  check_kernel(
      "attention", {o.q, o.k, o.v, added}, {y}, {{"mask", int64_t{1}}},
      {reference::attention(s, o.q.values, o.k.values, o.v.values,
                            spread(added, [](const Tensor& m, int64_t, int64_t, int64_t i,
                                             int64_t j) { return m.values[static_cast<size_t>(i * 21 + j)]; }))},
      1e-5, "added mask");
  // Padding of keys per image; the second image forbids all.
  Tensor allowed = plain({2, 1, 1, 21}, std::vector<double>(42), DType::boolean);
  for (size_t j = 0; j < 15; ++j) allowed.values[j] = 1;
  check_kernel("attention", {o.q, o.k, o.v, allowed}, {y}, {{"mask", int64_t{1}}},
               {reference::attention(s, o.q.values, o.k.values, o.v.values,
                                     spread(allowed,
                                            [](const Tensor& m, int64_t b, int64_t, int64_t, int64_t j) {
                                              return m.values[static_cast<size_t>(b * 21 + j)] != 0
                                                         ? 0.0
                                                         : -std::numeric_limits<double>::infinity();
                                            }))},
               1e-5, "bool mask");
}

TEST(Attention, ReadsHeadsInsideFusedRows) {
  const AttentionSizes s = {2, 3, 3, 10, 10, 8, 8, 1 / std::sqrt(8.0), true};
  const Operands o = operands_of(s);
  Tensor fused = plain({2, 10, 72}, std::vector<double>(1440));
  std::vector<double> expected(480);
  const auto attended = reference::attention(s, o.q.values, o.k.values, o.v.values, {});
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
  try {
    run_kernel("attention", {fused, fused, fused}, {TensorView::plain(DType::f32, std::vector<int64_t>{1, 4, 16})},
               {{"heads", int64_t{2}}, {"head_dim", int64_t{8}}, {"v_offset", int64_t{16}}});
    FAIL() << "accepted";
  } catch (const InvalidModel& error) {
    EXPECT_NE(std::string(error.what()).find("v holds 2 heads of 8 from element 16, which exceeds its rows"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace hetnn::kernels::testing
