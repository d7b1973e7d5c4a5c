// Sums and bounds behind products of bf16: the bits of one operation after another.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernel_runner.h"

namespace hetnn::kernels::testing {

/// The kernel with a value added behind it, bounded and not, on every instruction set: as it alone, the sum rounded.
inline void check_brain_sums(const std::string& name, std::vector<Tensor> inputs, const TensorView& y,
                             const TensorView& operand, const Params& params) {
  std::vector<double> addend = random_values(y.elems(), 9, -4, 4);
  for (double& value : addend) value = bf16_to_f32(f32_to_bf16(static_cast<float>(value)));
  addend.front() = NAN;
  addend.back() = INFINITY;
  std::vector<Tensor> alone = inputs;
  const auto at = static_cast<int>(inputs.size());
  inputs.push_back({operand, addend});
  const Step sum = {"ordered_sum_bf16", at, {1, 1}};
  std::vector<std::string> isas = available_isas();
  isas.emplace_back();  // whatever this machine has
  for (const std::string& isa : isas) {
    restrict_isa(isa);
    const std::vector<double> product = run_kernel(name, alone, {y}, params)[0];
    for (const auto& [steps, low, high] : {std::tuple<std::vector<Step>, double, double>{{sum}, -INFINITY, INFINITY},
                                           {{sum, {"relu", -1, {}}}, 0, INFINITY},
                                           {{sum, {"clamp", -1, {-0.5, 2}}}, -0.5, 2}}) {
      std::vector<double> expected(product.size());
      for (size_t i = 0; i < product.size(); ++i) {
        const float exact = static_cast<float>(product[i]) + static_cast<float>(addend[i]);
        const double rounded = bf16_to_f32(f32_to_bf16(exact));
        expected[i] = std::isnan(rounded) ? rounded : std::clamp(rounded, low, high);
      }
      for (const int threads : {1, 2, 3})
        expect_close(run_kernel(name, inputs, {y}, params, {.threads = threads, .steps = steps})[0], expected, 0,
                     text(name, " and a sum on ", isa, " with ", threads, " threads"));
      if (::testing::Test::HasFatalFailure()) break;
    }
  }
  restrict_isa("");
}

}  // namespace hetnn::kernels::testing
