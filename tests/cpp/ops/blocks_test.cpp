// Integers in blocks: what they stand for, by hand, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "hetnn/base/error.h"
#include "hetnn/base/stored.h"
#include "run_meaning.h"

namespace hetnn::ops {
namespace {

// Integers as a tensor of a type of integers, stored ones too.
Tensor integers(DType dtype, std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  std::byte* data = nullptr;
  Tensor out = Tensor::zeros(dtype, std::move(shape), &data);
  write_integers(dtype, values.data(), out.elems(), data);
  return out;
}

std::vector<double> numbers(const Tensor& tensor) {
  std::vector<double> out(static_cast<size_t>(tensor.elems()));
  read_numbers(tensor.dtype(), tensor.data(), tensor.elems(), out.data());
  return out;
}

Attrs along(int64_t axis, int64_t block) { return {{"axis", Dim(axis)}, {"block", Dim(block)}}; }

Tensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return Tensor::of(std::move(shape), values);
}

TEST(IntegersInBlocks, EachStandsForRealsByItsOwnScale) {
  // Along the last axis, the last block of one.
  const Tensor x = integers(DType::i8, {2, 3}, {1, 2, 3, -4, 5, -128});
  const Tensor scales = floats({2, 2}, {0.5F, 2, 3, -1}), zeros = integers(DType::i8, {2, 2}, {1, 0, 0, 127});
  const Tensor y = run_meaning("dequantize_blocks", {x, scales, zeros}, along(-1, 2));
  EXPECT_EQ(numbers(y), (std::vector<double>{0, 0.5, 6, -12, 15, 255}));
  // Along the first one.
  const Tensor of_columns = floats({1, 3}, {1, 10, 100});
  EXPECT_EQ(numbers(run_meaning("dequantize_blocks", {x, of_columns, std::nullopt}, along(0, 16))),
            (std::vector<double>{1, 20, 300, -4, 50, -12800}));
}

TEST(IntegersInBlocks, StoredIntegersHaveTheirSign) {
  const Tensor scales = floats({1, 2}, {1, 2});
  const auto of = [&](DType dtype) {
    const Tensor x = integers(dtype, {1, 4}, {-1, 1, 2, 3});
    return numbers(run_meaning("dequantize_blocks", {x, scales, std::nullopt}, along(1, 2)));
  };
  EXPECT_EQ(of(DType::i4), (std::vector<double>{-1, 1, 4, 6}));
  EXPECT_EQ(of(DType::u4), (std::vector<double>{15, 1, 4, 6}));
  EXPECT_EQ(of(DType::i2), (std::vector<double>{-1, 1, -4, -2}));
  EXPECT_EQ(of(DType::u2), (std::vector<double>{3, 1, 4, 6}));
}

TEST(IntegersInBlocks, RealsAreRoundedToEvenAndSaturated) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor x = floats({2, 4}, {0.5F, 1.5F, -100, 100, nan, inf, -inf, 2.5F});
  const Tensor scales = floats({1, 4}, {1, 1, 2, 0.5F});
  const auto of = [&](DType to, const std::optional<Tensor>& zeros) {
    Attrs attrs = along(0, 2);
    attrs.emplace("to", to);
    return numbers(run_meaning("quantize_blocks", {x, scales, zeros}, attrs));
  };
  EXPECT_EQ(of(DType::i8, {}), (std::vector<double>{0, 2, -50, 127, 0, 127, -128, 5}));
  EXPECT_EQ(of(DType::i4, {}), (std::vector<double>{0, 2, -8, 7, 0, 7, -8, 5}));
  EXPECT_EQ(of(DType::u4, integers(DType::u4, {1, 4}, {3, 1, 15, 2})), (std::vector<double>{3, 3, 0, 15, 3, 15, 0, 7}));
}

TEST(IntegersInBlocks, AWholeTensorOfStoredIntegersStandsForReals) {
  const Type type{DType::i4, {4}, Quant{{0.5}, {2}}};
  Call call;
  call.op = &OpTable::global().get("dequantize");
  call.inputs = {{&type, nullptr}};
  const std::optional<Tensor> x[] = {integers(DType::i4, {4}, {-8, -1, 2, 7})};
  EXPECT_EQ(numbers(evaluate(call, x, {}).front()), (std::vector<double>{-5, -1.5, 0, 2.5}));
}

// Why a call of inputs of these types is refused; nothing where it is not. Inputs may be known.
std::string refusal(std::string_view op, const std::vector<Type>& inputs, Attrs attrs, const Tensor* scales = nullptr) {
  Call call;
  call.op = &OpTable::global().get(op);
  for (const Type& type : inputs) call.inputs.push_back({&type, call.inputs.size() == 1 ? scales : nullptr});
  call.attrs = std::move(attrs);
  call.name = "y";
  try {
    complete(call);
    infer_types(call);
  } catch (const InvalidModel& error) {
    return error.what();
  }
  return {};
}

TEST(IntegersInBlocks, WhatDoesNotFitIsRefused) {
  using testing::AllOf;
  using testing::HasSubstr;
  const Type x{DType::i8, {3, 40}}, reals{DType::f32, {3, 40}}, s{DType::f32, {3, 3}};
  EXPECT_EQ(refusal("dequantize_blocks", {x, s, {DType::i8, {3, 3}}}, along(-1, 16)), "");
  EXPECT_THAT(refusal("dequantize_blocks", {reals, s}, along(1, 16)), HasSubstr("dequantize_blocks_c1"));
  EXPECT_THAT(refusal("quantize_blocks", {x, s}, along(1, 16)), HasSubstr("quantize_blocks_c1"));
  Attrs to_i64 = along(1, 16);
  to_i64.emplace("to", DType::i64);
  EXPECT_THAT(refusal("quantize_blocks", {reals, s}, to_i64), HasSubstr("quantize_blocks_c1"));
  for (const int64_t block : {0, -16}) {
    EXPECT_THAT(refusal("dequantize_blocks", {x, s}, along(1, block)),
                AllOf(HasSubstr("dequantize_blocks_c2"), HasSubstr(text("block = ", block))));
  }
  for (const int64_t axis : {2, -3}) {
    EXPECT_THAT(refusal("dequantize_blocks", {x, s}, along(axis, 16)),
                AllOf(HasSubstr("dequantize_blocks_c3"), HasSubstr(text("got ", axis))));
  }
  const std::vector<std::vector<Type>> unfit = {{x, {DType::f32, {3, 2}}},   {x, {DType::f32, {3}}},
                                                {x, {DType::i8, {3, 3}}},    {x, s, {DType::i8, {3, 2}}},
                                                {x, s, {DType::u8, {3, 3}}}, {x, s, {DType::f16, {3, 3}}}};
  for (const std::vector<Type>& inputs : unfit) {
    EXPECT_THAT(refusal("dequantize_blocks", inputs, along(1, 16)),
                AllOf(HasSubstr("dequantize_blocks_c4"), HasSubstr("blocks of 16 along axis 1")));
  }
}

TEST(IntegersInBlocks, KnownScalesAreFinite) {
  using testing::AllOf;
  using testing::HasSubstr;
  const auto of = [](std::string_view op, float scale) {
    const Tensor scales = floats({1, 2}, {1, scale});
    const DType x = op == "quantize_blocks" ? DType::f32 : DType::i8;
    return refusal(op, {{x, {1, 4}}, {DType::f32, {1, 2}}}, along(1, 2), &scales);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const float scale : {nan, inf, -inf}) {
    for (const std::string op : {"dequantize_blocks", "quantize_blocks"})
      EXPECT_THAT(of(op, scale), AllOf(HasSubstr(op + "_c5"), HasSubstr("block 1 of 2")));
  }
  EXPECT_THAT(of("quantize_blocks", 0), AllOf(HasSubstr("quantize_blocks_c5"), HasSubstr("not 0")));
  EXPECT_EQ(of("dequantize_blocks", 0), "");  // a block of zeros
  EXPECT_EQ(of("dequantize_blocks", -1), "");
}

}  // namespace
}  // namespace hetnn::ops
