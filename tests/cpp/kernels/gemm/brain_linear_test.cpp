// Products of rows and weights of bf16, by tiles (AMX) and without.
#include <algorithm>

#include "../brain_sums.h"
#include "../kernel_runner.h"
#include "hetnn/kernels/isa.h"

namespace hetnn::kernels::testing {
namespace {

void check_layer(int64_t rows, int64_t k, int64_t cols, bool bias) {
  std::vector<Tensor> inputs = {plain({rows, k}, short_values(rows * k, 1), DType::bf16),
                                plain({cols, k}, short_values(cols * k, 2), DType::bf16)};
  if (bias) inputs.push_back(plain({cols}, short_values(cols, 3), DType::bf16));
  const std::vector<double> expected = meaning("linear", inputs);
  // Rounded once: half a unit of 8 bits, and what sums of f32 may lie beside the middle of two.
  constexpr double kTolerance = 1.001 / 256;
  for (const char* isa : {"AMX", "AVX3", ""}) {
    const std::vector<std::string> isas = available_isas();
    if (*isa != '\0' && std::ranges::find(isas, isa) == isas.end()) continue;
    restrict_isa(isa);
    check_kernel("linear_bf16", inputs, {TensorView::plain(DType::bf16, std::vector<int64_t>{rows, cols})},
                 {{"bias", int64_t{bias}}}, {expected}, kTolerance,
                 text("linear of ", rows, "x", k, " by ", cols, " ", isa));
    restrict_isa("");
  }
}

TEST(BrainLinear, EveryTailOfRowsDepthsAndColumns) {
  for (const int64_t rows : {1, 3, 4, 15, 17, 49})
    for (const int64_t k : {1, 2, 7, 30, 32, 64, 70, 101})
      for (const int64_t cols : {1, 15, 16, 17, 40}) {
        check_layer(rows, k, cols, rows % 2 == 1);
        if (HasFatalFailure()) return;
      }
}

TEST(BrainLinear, LongRowsAndManyOfThem) {
  for (const auto& [rows, k, cols] :
       {std::tuple<int64_t, int64_t, int64_t>{1200, 36, 70}, {50, 2112, 130}, {700, 300, 600}, {49, 30, 2049}})
    check_layer(rows, k, cols, true);
}

TEST(BrainLinear, AddsAValueAndBoundsTheSum) {
  for (const auto& [rows, k, cols] :
       {std::tuple<int64_t, int64_t, int64_t>{1, 7, 15}, {17, 64, 40}, {50, 101, 130}, {300, 32, 64}}) {
    const std::vector<Tensor> inputs = {plain({rows, k}, short_values(rows * k, 1), DType::bf16),
                                        plain({cols, k}, short_values(cols * k, 2), DType::bf16)};
    const TensorView y = TensorView::plain(DType::bf16, std::vector<int64_t>{rows, cols});
    check_brain_sums("linear_bf16", inputs, y, y, {});
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace hetnn::kernels::testing
