// Products with weights in blocks of a few bits.
#include <algorithm>
#include <limits>

#include "../kernel_runner.h"

namespace hetnn::kernels::testing {
namespace {

struct Layer {
  int64_t rows = 1, k = 1, cols = 1, block = 32, bits = 4;
  bool zeros = false, bias = false;
  DType scales = DType::f32;
  std::vector<Step> steps = {};
};

// Whole numbers from 0 to 255.
std::vector<double> random_bytes(int64_t count, unsigned seed) {
  std::vector<double> out = random_values(count, seed, 0, 256);
  for (double& value : out) value = std::floor(value);
  return out;
}

// By the definition, in f64; `x` is drawn unless it is given.
void check_layer(const Layer& layer, std::vector<double> x = {}, double tolerance = 1e-6) {
  const auto [rows, k, cols, block, bits, has_zeros, has_bias, dtype, steps] = layer;
  const int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8;
  if (x.empty()) x = random_values(rows * k, 1);
  const std::vector<double> codes = random_bytes(cols * blocks * bytes, 2);
  std::vector<double> scales = random_values(cols * blocks, 3, 0.01, 0.02), zeros = random_bytes(cols * blocks, 4);
  if (dtype == DType::f16)
    for (double& scale : scales) scale = std::round(scale * 16384) / 16384;  // of at most 9 bits
  for (double& zero : zeros) zero = static_cast<double>(static_cast<int>(zero) >> (8 - bits));
  const std::vector<double> bias = random_values(cols, 5);
  std::vector<double> expected;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t col = 0; col < cols; ++col) {
      double sum = has_bias ? bias[static_cast<size_t>(col)] : 0;
      for (int64_t i = 0; i < k; ++i) {
        const auto b = static_cast<size_t>(col * blocks + i / block);
        const int64_t bit = i % block * bits;
        const int byte = static_cast<int>(codes[b * static_cast<size_t>(bytes) + static_cast<size_t>(bit / 8)]);
        const int code = byte >> (bit % 8) & ((1 << bits) - 1);
        sum += x[static_cast<size_t>(row * k + i)] * (code - (has_zeros ? zeros[b] : 1 << (bits - 1))) * scales[b];
      }
      expected.push_back(!steps.empty() ? std::max(sum, 0.0) : sum);
    }
  const std::vector<int64_t> of_blocks = {cols, blocks};
  std::vector<Tensor> inputs = {plain({rows, k}, x), plain({cols, blocks, bytes}, codes, DType::u8),
                                plain(of_blocks, scales, dtype)};
  if (has_zeros) inputs.push_back(plain(of_blocks, zeros, DType::u8));
  if (has_bias) inputs.push_back(plain({cols}, bias));
  check_kernel("block_linear", inputs, {TensorView::plain(DType::f32, std::vector<int64_t>{rows, cols})},
               {{"bits", bits}, {"zero_points", int64_t{has_zeros}}, {"bias", int64_t{has_bias}}}, {expected},
               tolerance, text("block_linear of ", rows, "x", k, " by ", cols, " in blocks of ", block, " of ", bits),
               steps);
}

TEST(BlockLinear, EveryTailOfRowsDepthsAndColumns) {
  for (const int64_t bits : {2, 4, 8})
    for (const int64_t rows : {1, 2, 3, 4, 5, 8, 9, 15})
      for (const int64_t k : {1, 16, 31, 32, 33, 100})
        for (const int64_t cols : {1, 15, 16, 17, 40}) {
          check_layer(
              {.rows = rows, .k = k, .cols = cols, .bits = bits, .zeros = cols % 2 == 1, .bias = rows % 2 == 1});
          if (HasFatalFailure()) return;
        }
}

TEST(BlockLinear, EveryBlock) {
  for (const int64_t block : {16, 32, 48, 64, 128, 256})
    for (const int64_t bits : {2, 4, 8})
      for (const int64_t rows : {1, 20}) {
        check_layer({.rows = rows, .k = 600, .cols = 33, .block = block, .bits = bits, .zeros = true, .bias = true});
        if (HasFatalFailure()) return;
      }
}

TEST(BlockLinear, ScalesOfHalfPrecision) {
  for (const int64_t rows : {1, 30})
    check_layer({.rows = rows, .k = 96, .cols = 50, .zeros = true, .scales = DType::f16});
}

TEST(BlockLinear, DepthsThatAreMultipliedInParts) {
  for (const int64_t rows : {3, 130}) check_layer({.rows = rows, .k = 2100, .cols = 35, .bias = true});
}

TEST(BlockLinear, TakesSteps) {
  for (const int64_t rows : {2, 40})
    check_layer({.rows = rows, .k = 64, .cols = 70, .bias = true, .steps = {{"relu", -1, {}}}});
}

TEST(BlockLinear, NumbersOfEverySize) {
  // Each block has a size of its own, and each element of a block another.
  std::vector<double> x = random_values(4 * 320, 7);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] *= std::ldexp(1.0, static_cast<int>(i % 320 / 32) * 2) * (i % 3 == 0 ? 1e-3 : 1);
  check_layer({.rows = 4, .k = 320, .cols = 20}, x);
  for (const double size : {1e-30, 1e30}) {
    std::vector<double> y = random_values(64, 8);
    for (double& value : y) value = static_cast<float>(value * size);
    check_layer({.rows = 1, .k = 64, .cols = 20}, y);
  }
  check_layer({.rows = 2, .k = 64, .cols = 20}, std::vector<double>(128, 0.0));
}

TEST(BlockLinear, InfinitiesAndNan) {
  std::vector<double> x = random_values(2 * 64, 9);
  x[5] = std::numeric_limits<double>::infinity();
  x[64 + 40] = std::numeric_limits<double>::quiet_NaN();
  // Infinity times a code that stands for 0 is NaN, as the definition has it.
  check_layer({.rows = 2, .k = 64, .cols = 40}, x);
}

}  // namespace
}  // namespace hetnn::kernels::testing
