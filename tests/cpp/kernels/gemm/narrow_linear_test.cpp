// Products with weights of f16 and bf16.
#include <algorithm>

#include "../kernel_runner.h"

namespace hetnn::kernels::testing {
namespace {

void check_layer(int64_t rows, int64_t k, int64_t cols, bool bias, const std::vector<Step>& steps = {}) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    std::vector<Tensor> inputs = {random_plain({rows, k}, 1), plain({cols, k}, short_values(cols * k, 2), dtype)};
    if (bias) inputs.push_back(random_plain({cols}, 3));
    std::vector<double> expected = meaning("linear", inputs);
    if (!steps.empty())
      for (double& value : expected) value = std::max(value, 0.0);
    check_kernel("linear_narrow", inputs, {TensorView::plain(DType::f32, std::vector<int64_t>{rows, cols})},
                 {{"bias", int64_t{bias}}}, {expected}, 2e-6,
                 text("linear of ", rows, "x", k, " by ", cols, " of ", dtype_name(dtype)), steps);
  }
}

TEST(NarrowLinear, EveryTailOfRowsDepthsAndColumns) {
  for (const int64_t rows : {1, 2, 15})
    for (const int64_t k : {1, 3, 4, 7, 64, 101})
      for (const int64_t cols : {1, 15, 16, 17, 40}) {
        check_layer(rows, k, cols, rows % 2 == 1);
        if (HasFatalFailure()) return;
      }
}

TEST(NarrowLinear, DepthsThatAreSummedInParts) {
  for (const int64_t rows : {1, 130}) check_layer(rows, 2111, 35, true);
}

TEST(NarrowLinear, TakesSteps) {
  for (const int64_t rows : {1, 20}) check_layer(rows, 64, 70, true, {{"relu", -1, {}}});
}

}  // namespace
}  // namespace hetnn::kernels::testing
