// Products and convolutions of bytes by tiles (AMX), bit for bit as their sums of integers and as AVX-512's.
#include "../integer_cases.h"

namespace hetnn::kernels::testing {
namespace {

bool has_tiles() {
  const std::vector<std::string> isas = available_isas();
  return std::ranges::find(isas, "AMX") != isas.end();
}

#define NEEDS_TILES() \
  if (!has_tiles()) GTEST_SKIP() << "this machine has no AMX, or grants none"

// What a layer gives by those instructions.
std::vector<double> result(const std::string& isa, const std::string& kernel, const std::vector<Tensor>& inputs,
                           const TensorView& output, const Params& params, const RunOptions& options) {
  restrict_isa(isa);
  std::vector<double> out = run_kernel(kernel, inputs, {output}, params, options)[0];
  restrict_isa("");
  return out;
}

// Both, with a sum behind them too, by any number of threads.
void expect_equal(const std::string& kernel, std::vector<Tensor> inputs, const TensorView& output, const Params& params,
                  const Integers& integers, const std::string& what) {
  const std::vector<double> plain = result("AVX3", kernel, inputs, output, params, {});
  const SumBehind sum(integers, plain, static_cast<int>(inputs.size()));
  for (const int threads : {1, 2, 3, 5})
    expect_same(result("AMX", kernel, inputs, output, params, {.threads = threads}), plain,
                text(what, " by ", threads, " threads"));
  inputs.push_back({output, sum.other});
  for (const int threads : {1, 2, 3})
    expect_same(result("AMX", kernel, inputs, output, params, {.threads = threads, .steps = sum.steps}), sum.expected,
                text(what, " and a sum by ", threads, " threads"));
}

TEST(IntegerTiles, LinearLayersOfEverySize) {
  NEEDS_TILES();
  for (const int64_t rows : {1, 4, 7, 17, 33, 47})
    for (const int64_t k : {1, 5, 61, 64, 67, 131})
      for (const int64_t filters : {1, 16, 19, 32, 37}) {
        const Integers integers = Integers::of(filters, 0.02, 0.02 * std::sqrt(static_cast<double>(k)), -5, 7);
        Params params{{"bias", int64_t{1}}};
        integers.set(params);
        expect_equal("linear_i8",
                     {plain({rows, k}, random_integers(rows * k, 1), DType::i8),
                      plain({filters, k}, random_integers(filters * k, 2), DType::i8),
                      plain({filters}, random_integers(filters, 3, -9000, 9000), DType::i32)},
                     TensorView::plain(DType::i8, std::vector<int64_t>{rows, filters}), params, integers,
                     text("linear of ", rows, "x", k, " by ", filters));
        if (HasFatalFailure()) return;
      }
}

TEST(IntegerTiles, LongRowsAndManyOfThem) {
  NEEDS_TILES();
  for (const auto& [rows, k, filters] :
       {std::tuple<int64_t, int64_t, int64_t>{2500, 36, 70}, {50, 9000, 130}, {1100, 700, 1100}, {49, 30, 2049}}) {
    Integers integers = Integers::of(filters, 0.02, 0.9, 3, -7);
    for (const int weight_zero : {0, -3}) {
      integers.weight_zero = weight_zero;
      Params params;
      integers.set(params);
      expect_equal("linear_i8",
                   {plain({rows, k}, random_integers(rows * k, 1), DType::i8),
                    plain({filters, k}, random_integers(filters * k, 2), DType::i8)},
                   TensorView::plain(DType::i8, std::vector<int64_t>{rows, filters}), params, integers,
                   text("linear of ", rows, "x", k, " by ", filters));
      if (HasFatalFailure()) return;
    }
  }
}

struct Window {
  int64_t kernel_h, kernel_w, stride_h, stride_w;
  std::vector<int64_t> padding;
  int64_t dilation = 1;
};

TEST(IntegerTiles, ConvolutionsOfEveryWindow) {
  NEEDS_TILES();
  const Window windows[] = {{1, 1, 1, 1, {0, 0, 0, 0}},    {1, 1, 2, 2, {0, 0, 0, 0}},    {1, 1, 1, 1, {1, 2, 0, 1}},
                            {3, 3, 1, 1, {1, 1, 1, 1}},    {3, 3, 2, 2, {1, 1, 1, 1}},    {3, 3, 1, 1, {0, 0, 0, 0}},
                            {2, 5, 3, 1, {0, 4, 1, 2}},    {3, 3, 1, 2, {2, 2, 2, 2}, 2}, {7, 7, 2, 2, {3, 3, 3, 3}},
                            {5, 1, 1, 1, {2, 0, 2, 0}, 1}, {1, 5, 1, 1, {0, 2, 0, 2}, 1}};
  for (const Window& at : windows)
    for (const auto& [height, width] : {std::pair<int64_t, int64_t>{7, 7}, {11, 1}, {9, 17}})
      for (const auto& [channels, filters, groups] : {std::tuple<int64_t, int64_t, int64_t>{3, 17, 1},
                                                      {13, 5, 1},
                                                      {64, 33, 1},
                                                      {67, 64, 1},
                                                      {130, 16, 1},
                                                      {12, 22, 2},
                                                      {30, 51, 3}}) {
        const int64_t out_h =
            (height + at.padding[0] + at.padding[2] - (at.kernel_h - 1) * at.dilation - 1) / at.stride_h + 1;
        const int64_t out_w =
            (width + at.padding[1] + at.padding[3] - (at.kernel_w - 1) * at.dilation - 1) / at.stride_w + 1;
        const bool fits = height + at.padding[0] + at.padding[2] > (at.kernel_h - 1) * at.dilation &&
                          width + at.padding[1] + at.padding[3] > (at.kernel_w - 1) * at.dilation;
        if (!fits) continue;
        const int64_t per_group = channels / groups, depth = per_group * at.kernel_h * at.kernel_w;
        const Integers integers = Integers::of(filters, 0.02, 0.02 * std::sqrt(static_cast<double>(depth)), 11, -7);
        Params params{{"bias", int64_t{0}},
                      {"stride", std::vector<int64_t>{at.stride_h, at.stride_w}},
                      {"padding", at.padding},
                      {"dilation", std::vector<int64_t>{at.dilation, at.dilation}},
                      {"groups", groups}};
        integers.set(params);
        const std::vector<int64_t> in = {2, channels, height, width}, out = {2, filters, out_h, out_w};
        expect_equal(
            "conv2d_i8",
            {{TensorView::nhwc(DType::i8, in, channels + (height == 9 ? 6 : 0)),
              random_integers(2 * channels * height * width, 1)},
             plain({filters, per_group, at.kernel_h, at.kernel_w}, random_integers(filters * depth, 2), DType::i8)},
            TensorView::nhwc(DType::i8, out, filters + 3), params, integers,
            text("conv of ", height, "x", width, "x", channels, " by ", filters, " of ", at.kernel_h, "x", at.kernel_w,
                 " in ", groups, " groups"));
        if (HasFatalFailure()) return;
      }
}

TEST(IntegerTiles, LeavesTheTilesUnused) {
  NEEDS_TILES();
#if defined(__x86_64__)
  const Integers integers = Integers::of(20, 0.02, 0.5, 1, 2);
  Params params;
  integers.set(params);
  result("AMX", "linear_i8",
         {plain({40, 100}, random_integers(4000, 1), DType::i8), plain({20, 100}, random_integers(2000, 2), DType::i8)},
         TensorView::plain(DType::i8, std::vector<int64_t>{40, 20}), params, {});
  alignas(64) std::array<unsigned char, 64> config{};
  config.fill(1);
  __asm__ volatile("sttilecfg %0" : "=m"(config));
  EXPECT_EQ(std::ranges::count(config, 0), 64);
#endif
}

}  // namespace
}  // namespace hetnn::kernels::testing
