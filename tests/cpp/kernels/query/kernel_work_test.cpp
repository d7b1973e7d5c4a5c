// What kernels say that they compute and fetch: of one thing more the parts that take it, and no others.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hetnn/kernels/kernel.h"
#include "hetnn/kernels/query/work.h"

namespace hetnn::kernels {
namespace {

using Shape = std::vector<int64_t>;

TensorView plain(const Shape& shape) { return TensorView::plain(DType::f32, shape); }
TensorView nhwc(const Shape& shape) { return TensorView::nhwc(DType::f32, shape); }

// Of the row of that name for that operator.
Work work_of_kernel(std::string_view name, std::string_view op, const std::vector<TensorView>& inputs,
                    const std::vector<TensorView>& outputs, Params params = {}, const std::vector<Step>& steps = {},
                    int threads = 1) {
  params.set("operator", std::string(op));
  if (!params.has("op")) params.set("op", std::string(op));
  for (const Variant& each : all_kernels())
    if (each.name == name && (each.op.empty() || each.op == op))
      return work_of(each, {inputs, outputs, params, steps}, {}, default_machine(), threads);
  ADD_FAILURE() << "no kernel " << name << " of " << op;
  return {};
}

double all_bytes(const Work& work) {
  double out = work.waited_bytes;
  for (const double bytes : work.bytes) out += bytes;
  return out;
}

TEST(KernelWork, RecurrentLayersReadTheirWeightsInEveryStep) {
  const auto of = [](int64_t steps, int64_t batch, int64_t units) {
    const std::vector<TensorView> inputs = {plain({steps, batch, 4 * units}), plain({4 * units, units}),
                                            plain({batch, units}), plain({batch, units})};
    return work_of_kernel("lstm", "lstm", inputs, {plain({steps, batch, units}), inputs[2], inputs[2]});
  };
  const Work ten = of(10, 1, 64), twenty = of(20, 1, 64);
  EXPECT_EQ(ten.barriers, 10);
  EXPECT_EQ(ten.grains, 4) << "sixteen units are a part";
  EXPECT_GE(all_bytes(ten), 10 * 4 * 64 * 64 * 4);
  EXPECT_DOUBLE_EQ(twenty.multiplies, 2 * ten.multiplies);
  EXPECT_DOUBLE_EQ(twenty.apart, 2 * ten.apart);
  EXPECT_LT(all_bytes(of(10, 4, 64)), 2 * all_bytes(ten)) << "four sequences share what is read";
  EXPECT_EQ(of(10, 1, 512).bytes[kSecondLevel], 0) << "4 MB leave that cache";
}

TEST(KernelWork, PoolsComputeFourVectorsTogether) {
  const auto of = [](int64_t channels, const std::string& op) {
    return work_of_kernel(op, op, {nhwc({1, channels, 8, 8})}, {nhwc({1, channels, 4, 4})},
                          {{"kernel", std::vector<int64_t>{2, 2}}});
  };
  for (const std::string op : {"max_pool2d", "avg_pool2d"}) {
    const Work one = of(16, op), four = of(64, op);
    EXPECT_EQ(one.grains, 4) << "rows of windows";
    EXPECT_LT(four.multiplies, 4 * one.multiplies);
    EXPECT_DOUBLE_EQ(of(128, op).multiplies, 2 * four.multiplies);
    EXPECT_DOUBLE_EQ(of(72, op).multiplies, four.multiplies + one.multiplies) << "a vector in part is one";
    EXPECT_DOUBLE_EQ(all_bytes(four), 64 * (64 + 16) * 4);
  }
  EXPECT_LT(of(64, "avg_pool2d").multiplies, of(64, "max_pool2d").multiplies);
  // Each of three cells along an axis of seven pixels covers three of them, each of seven one.
  const auto adaptive = [](int64_t cells) {
    return work_of_kernel("adaptive_avg_pool2d", "adaptive_avg_pool2d", {nhwc({1, 64, 7, 7})},
                          {nhwc({1, 64, cells, cells})});
  };
  EXPECT_EQ(adaptive(3).grains, 9);
  const double output = (adaptive(7).multiplies - adaptive(1).multiplies) / 48;
  const double pixel = (adaptive(1).multiplies - output) / 49;
  EXPECT_DOUBLE_EQ(adaptive(3).multiplies, 81 * pixel + 9 * output);
}

TEST(KernelWork, NormsTakeAPassForEachSum) {
  const auto of = [](const std::string& op, int64_t n) {
    return work_of_kernel(op, op, {plain({10, n})}, {plain({10, n})}).multiplies;
  };
  EXPECT_LT(of("rms_norm", 768), of("layer_norm", 768));
  EXPECT_LT(of("layer_norm", 768), 2 * of("layer_norm", 384)) << "a row begins and ends";
}

TEST(KernelWork, ShortLinesOfASoftmaxAreTurned) {
  const auto of = [](const Shape& shape) {
    return work_of_kernel("softmax", "softmax", {plain(shape)}, {plain(shape)}, {{"axis", int64_t{1}}}).multiplies;
  };
  EXPECT_GT(of({320, 23}) / (320 * 23), of({320, 32}) / (320 * 32));
  EXPECT_GT(of({320, 16}), of({1, 16, 320})) << "lines side by side need no turning";
}

TEST(KernelWork, ReductionsFollowWhatLiesSideBySide) {
  const auto of = [](const std::string& op, const Shape& x, const Shape& y, int64_t axis) {
    return work_of_kernel("reduce", op, {plain(x)}, {plain(y)}, {{"axes", std::vector<int64_t>{axis}}}).multiplies;
  };
  EXPECT_LT(of("sum", {64, 64}, {64}, 0), of("sum", {64, 64}, {64}, 1)) << "of rows each sum is added up";
  EXPECT_LT(of("sum", {64, 64}, {64}, 1), of("reduce_max", {64, 64}, {64}, 1));
  EXPECT_GT(of("sum", {512, 8}, {512}, 1), of("sum", {256, 16}, {256}, 1)) << "rows of less than a vector";
}

TEST(KernelWork, CopiesThatTurnTakeLonger) {
  const auto of = [](const Shape& perm, const Shape& x, const Shape& y) {
    return work_of_kernel("transpose", "permute", {plain(x)}, {plain(y)}, {{"perm", perm}});
  };
  const Work rows = of({1, 0, 2}, {8, 16, 64}, {16, 8, 64}), turned = of({0, 2, 1}, {8, 16, 64}, {8, 64, 16});
  EXPECT_DOUBLE_EQ(all_bytes(rows), 2 * 8 * 16 * 64 * 4) << "read and written";
  EXPECT_DOUBLE_EQ(all_bytes(rows), all_bytes(turned));
  EXPECT_LT(rows.multiplies, turned.multiplies);
  // Plain memory of another shape from channels last goes through plain memory of its own.
  EXPECT_EQ(work_of_kernel("reshape", "reshape", {nhwc({1, 32, 4, 4})}, {nhwc({1, 16, 8, 4})}).barriers, 1);
}

TEST(KernelWork, SlicesOfATableInMemoryAreWaitedFor) {
  const auto of = [](int64_t rows) {
    return work_of_kernel("gather", "gather", {plain({rows, 384}), TensorView::plain(DType::i64, Shape{128})},
                          {plain({128, 384})}, {{"axis", int64_t{0}}});
  };
  EXPECT_EQ(of(100).waited_bytes, 0);
  EXPECT_GT(of(100000).waited_bytes, 2 * 128 * 384 * 4);
  // Of plain images both kernels do the same, and the first is taken.
  const std::vector<TensorView> images = {plain({1, 32, 8, 8}), TensorView::plain(DType::i64, Shape{32})};
  const Params channels = {{"axis", int64_t{1}}};
  EXPECT_EQ(work_of_kernel("gather_channels", "gather", images, {images[0]}, channels).multiplies,
            work_of_kernel("gather", "gather", images, {images[0]}, channels).multiplies);
  const std::vector<TensorView> turned = {nhwc({1, 32, 8, 8}), images[1]};
  EXPECT_GT(work_of_kernel("gather_channels", "gather", turned, {turned[0]}, channels).multiplies, 2 * 64);
}

TEST(KernelWork, PixelsThatAreLeftOverInARowOfGroupsTakeLonger) {
  const auto a_pixel = [](int64_t size, int64_t kernel) {
    const std::vector<TensorView> inputs = {nhwc({1, 64, size, size}), plain({64, 8, kernel, kernel})};
    const Params params = {{"padding", Shape{kernel / 2, kernel / 2}}, {"groups", int64_t{8}}};
    return work_of_kernel("conv2d_grouped", "conv2d", inputs, {nhwc({1, 64, size, size})}, params).multiplies /
           static_cast<double>(size * size);
  };
  EXPECT_LT(a_pixel(12, 5), a_pixel(11, 5)) << "eight of twelve together, and none of eleven";
  EXPECT_DOUBLE_EQ(a_pixel(11, 5), a_pixel(9, 5));
  EXPECT_LT(a_pixel(36, 5), a_pixel(12, 5));
  EXPECT_LT(a_pixel(7, 3), a_pixel(6, 3)) << "rows of seven share what neighbouring windows read";
  EXPECT_DOUBLE_EQ(a_pixel(9, 3), a_pixel(7, 3));
}

TEST(KernelWork, StepsTakeAPassButBoundsInRegisters) {
  const std::vector<TensorView> inputs = {nhwc({1, 32, 8, 8}), plain({32, 32, 1, 1}), nhwc({1, 32, 8, 8})};
  const auto of = [&](const std::vector<Step>& steps) {
    return work_of_kernel("conv2d_direct", "conv2d", inputs, {inputs[2]}, {}, steps);
  };
  const Work bare = of({});
  const Step relu{.function = "relu", .input = -1, .values = {}}, silu{.function = "silu", .input = -1, .values = {}};
  const Step sum{.function = "sum", .input = 2, .values = {1, 1}};
  EXPECT_DOUBLE_EQ(of({relu}).apart, bare.apart);
  EXPECT_GT(of({silu}).apart, of({sum}).apart);
  EXPECT_GT(of({sum}).apart, bare.apart);
  EXPECT_DOUBLE_EQ(all_bytes(of({sum})), all_bytes(bare) + 32 * 8 * 8 * 4);
  const auto unary = [&](const std::vector<Step>& steps) {
    return work_of_kernel("unary", "neg", {inputs[0]}, {inputs[0]}, {{"op", "neg"}}, steps).apart;
  };
  EXPECT_GT(unary({relu}), unary({})) << "tiles are gone over again";
}

TEST(KernelWork, ValuesThatLieOtherwiseAreBroughtTogether) {
  const auto of = [](const TensorView& b) {
    const TensorView a = nhwc({1, 32, 8, 8});
    return work_of_kernel("binary", "mul", {a, b}, {a}, {{"op", "mul"}}).multiplies;
  };
  EXPECT_GT(of(plain({1, 32, 8, 8})), 2 * of(nhwc({1, 32, 8, 8})));
  EXPECT_DOUBLE_EQ(of(plain({1, 32, 1, 1})), of(nhwc({1, 32, 8, 8})));
}

}  // namespace
}  // namespace hetnn::kernels
