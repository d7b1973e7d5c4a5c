// The proof that a stream is sound: each way in which it is not has a message.
#include "hetnn/npu/verify.h"

#include <gtest/gtest.h>

#include "expect_error.h"

namespace hetnn::npu {
namespace {

constexpr int64_t kArena = static_cast<int64_t>(Region::arena), kI8 = static_cast<int64_t>(DType::i8);

Spec small_spec() {
  Spec spec = systolic_spec(4, 4);
  spec.sram[0].bytes = 1024;
  return spec;
}

Needs verify(std::vector<Instruction> stream) {
  stream.emplace_back(End{});
  return verify_stream(small_spec(), stream, 64);
}

Conv2d convolution() {
  return {.groups = 1,
          .in_h = 4,
          .in_w = 4,
          .in_c = 2,
          .in_row_pitch = 32,
          .in_pixel_pitch = 8,
          .out_addr = 256,
          .out_h = 4,
          .out_w = 4,
          .out_c = 1,
          .out_row_pitch = 16,
          .out_pixel_pitch = 4,
          .weight_addr = 512,
          .kernel_h = 1,
          .kernel_w = 1,
          .stride_h = 1,
          .stride_w = 1,
          .dilation_h = 1,
          .dilation_w = 1};
}
Pool window() {
  return {.channels = 1,
          .in_h = 2,
          .in_w = 2,
          .in_row_pitch = 8,
          .in_pixel_pitch = 4,
          .out_addr = 64,
          .out_h = 1,
          .out_w = 1,
          .out_row_pitch = 4,
          .out_pixel_pitch = 4,
          .kernel_h = 2,
          .kernel_w = 2,
          .stride_h = 1,
          .stride_w = 1,
          .dilation_h = 1,
          .dilation_w = 1};
}

TEST(VerifyStream, SaysHowFarASoundOneReaches) {
  EXPECT_EQ(verify({convolution(), Signal{.from = 1, .to = 2}, Wait{.at = 2, .from = 1}, window()}).scratchpad_bytes,
            520);
}

TEST(VerifyStream, SignalFrom3) {
  EXPECT_ERROR(verify({Signal{.from = 3, .to = 1}}), InvalidModel, "instruction 0 (signal from=3 to=1)",
               "an engine's number is at most 2");
  EXPECT_ERROR(verify({Wait{.at = 1, .from = 3}}), InvalidModel, "an engine's number is at most 2");
  EXPECT_ERROR(verify({Wait{.at = 1, .from = 0}}), InvalidModel, "the token it waits for was passed before");
  EXPECT_ERROR(verify({Signal{.from = 0, .to = 1}}), InvalidModel, "engine dma passes 1 tokens to mac");
}

TEST(VerifyStream, Dtype10To15) {
  for (int64_t dtype = 0; dtype < 16; ++dtype) {
    if (dtype == 0 || dtype == 2 || dtype == 4) continue;
    Conv2d conv = convolution();
    conv.dtype = dtype;
    EXPECT_ERROR(verify({conv}), InvalidModel, "dtype is f32, f16 or i8");
    Reduce reduce{.dtype = dtype, .rows = 1, .channels = 1, .out_addr = 64};
    EXPECT_ERROR(verify({reduce}), InvalidModel, "dtype is f32 or f16");
  }
  EXPECT_ERROR(verify({Reduce{.dtype = kI8, .rows = 1, .channels = 1}}), InvalidModel, "dtype is f32 or f16");
  EXPECT_ERROR(verify({Elementwise{.op = 5, .rows = 1, .channels = 1}}), InvalidModel, "op is at most 4");
  EXPECT_ERROR(verify({Activation{.act = 3, .rows = 1, .channels = 1}}), InvalidModel, "tables are of i8");
  EXPECT_ERROR(verify({Move{.elem_bytes = 3, .size0 = 1, .size1 = 1, .size2 = 1}}), InvalidModel,
               "elem_bytes is 1, 2, 4 or 8");
}

TEST(VerifyStream, RowsThatTheEngineDoesNotCompute) {
  const Softmax softmax{.dtype = kI8, .rows = 1, .channels = 4, .out_addr = 64, .table_addr = 128};
  const Normalize normalize{.dtype = kI8, .shift = 9, .rows = 1, .channels = 4, .out_addr = 64, .factors_addr = 128};
  EXPECT_ERROR(verify({softmax}), InvalidModel, "the vector engine computes softmax");
  EXPECT_ERROR(verify({normalize}), InvalidModel, "the vector engine normalizes");
  Spec spec = small_spec();
  spec.sram[0].bytes = 2048;
  spec.vector.softmax_cycles = spec.vector.normalize_cycles = 2;
  const auto with_rows = [&](const Instruction& instruction) {
    return verify_stream(spec, std::vector<Instruction>{instruction, End{}}, 64).scratchpad_bytes;
  };
  EXPECT_EQ(with_rows(softmax), 128 + 258 * 4);
  EXPECT_EQ(with_rows(normalize), 128 + 4 * 8 + 8);
  const auto refused = [&](auto instruction, auto field, int64_t value, const char* message) {
    instruction.*field = value;
    EXPECT_ERROR(with_rows(instruction), InvalidModel, message);
  };
  refused(softmax, &Softmax::dtype, 0, "dtype is i8");
  refused(softmax, &Softmax::channels, 0, "channels is positive");
  refused(softmax, &Softmax::table_addr, 1024, "the table lies in the scratchpad of 2048 bytes");
  refused(normalize, &Normalize::dtype, 0, "dtype is i8");
  refused(normalize, &Normalize::channels, (1 << 14) + 1, "channels is at most 16384");
  refused(normalize, &Normalize::shift, 0, "shift is positive");
  refused(normalize, &Normalize::shift, 63, "shift is at most 62");
  refused(normalize, &Normalize::factors_addr, 2040, "the factors lies in the scratchpad of 2048 bytes");
}

TEST(VerifyStream, AKernelProductOf2To64) {
  Conv2d conv = convolution();
  conv.kernel_h = conv.kernel_w = 65535;
  conv.in_c = conv.out_c = 65536;
  conv.in_h = conv.in_w = 0;
  EXPECT_ERROR(verify({conv}), InvalidModel, "the weights has no more bytes than the scratchpad, 1024");
  EXPECT_ERROR(verify({Matmul{.m = 1 << 20, .k = 1 << 20, .n = 1 << 20}}), InvalidModel, "a has no more bytes");
}

TEST(VerifyStream, AWindowOf0) {
  Pool pool = window();
  pool.kernel_h = 0;
  EXPECT_ERROR(verify({pool}), InvalidModel, "every count, window, stride and dilation is positive");
  Conv2d conv = convolution();
  conv.stride_w = 0;
  EXPECT_ERROR(verify({conv}), InvalidModel, "every count, kernel, stride and dilation is positive");
}

TEST(VerifyStream, LoadsOf2To60ElementsOf0Bytes) {
  EXPECT_ERROR(verify({DmaLoad{.region = kArena, .size0 = 0, .size1 = 1 << 20, .size2 = 1 << 20}}), InvalidModel,
               "a transfer has no more bytes than the scratchpad");
  EXPECT_ERROR(verify({Elementwise{.rows = 1LL << 31, .channels = 0}}), InvalidModel, "an operand has no more bytes");
  EXPECT_ERROR(verify({Move{.elem_bytes = 1, .size0 = 0, .size1 = 1 << 20, .size2 = 1 << 20}}), InvalidModel,
               "what is moved has no more bytes");
}

TEST(VerifyStream, RangesDoNotWrap) {
  EXPECT_ERROR(verify({DmaLoad{.region = kArena,
                               .size0 = 1,
                               .size1 = 2,
                               .size2 = 2,
                               .dram_stride1 = (1LL << 40) - 1,
                               .dram_stride2 = (1LL << 40) - 1}}),
               InvalidModel, "lies in the arena of 64 bytes");
  Conv2d conv = convolution();
  conv.out_row_pitch = (1LL << 32) - 1;
  EXPECT_ERROR(verify({conv}), InvalidModel, "the output lies in the scratchpad of 1024 bytes");
  EXPECT_ERROR(verify({DmaStore{.region = 0, .size0 = 1, .size1 = 1, .size2 = 1}}), InvalidModel,
               "it stores to the arena");
}

TEST(VerifyStream, AnOperandLiesWhereItsEngineReaches) {
  Spec spec = small_spec();
  spec.sram[0] = {.name = "maps", .bytes = 512};
  spec.sram.push_back({.name = "weights", .bytes = 512});
  spec.mac.reach[static_cast<size_t>(Operand::weights)] = {"weights"};
  const auto verified = [&](const Conv2d& conv) {
    const std::vector<Instruction> stream = {conv, End{}};
    return verify_stream(spec, stream, 64);
  };
  EXPECT_EQ(verified(convolution()).scratchpad_bytes, 520);
  Conv2d conv = convolution();
  conv.weight_addr = 384;
  EXPECT_ERROR(verified(conv), InvalidModel, "the weights lies in a scratchpad that mac reaches, and not in 'maps'");
  conv = convolution();
  conv.out_addr = 480;
  EXPECT_ERROR(verified(conv), InvalidModel, "the output lies in one scratchpad");
}

TEST(VerifyStream, EndsOnce) {
  EXPECT_ERROR(verify({End{}}), InvalidModel, "instruction 0 (end): the stream ends with one end");
  const std::vector<Instruction> open = {window()};
  EXPECT_ERROR(verify_stream(small_spec(), open, 64), InvalidModel, "the stream ends with one end");
}

TEST(VerifyStream, WorkIsBounded) {
  Spec spec = small_spec();
  spec.sram[0].bytes = 1LL << 32;
  const std::vector<Instruction> stream = {Matmul{.m = 32768, .k = 32768, .n = 32768}, End{}};
  EXPECT_ERROR(verify_stream(spec, stream, 64), DoesNotFit, "takes more than 1.75922e+13 operations");
}

}  // namespace
}  // namespace hetnn::npu
