// The simulator executes words, and traps what no sound program does.
#include "hetnn/sim/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "expect_error.h"
#include "hetnn/base/error.h"

namespace hetnn::sim {
namespace {

using namespace hetnn::npu;  // NOLINT(google-build-using-namespace): the instructions' own names

Spec small_spec() {
  Spec spec = systolic_spec(4, 4);
  spec.sram[0].bytes = 1024;
  return spec;
}

constexpr int64_t kArena = static_cast<int64_t>(Region::arena);

TEST(Machine, ComputesAConvolutionByHand) {
  // A 1x3 row of two channels against one 1x1 filter (2, -1), bias 0.5, relu.
  const float weights[] = {2, -1, 0.5F};
  const std::vector<Instruction> stream = {
      DmaLoad{.region = 0, .dram_addr = 0, .sram_addr = 0, .size0 = 12, .size1 = 1, .size2 = 1},
      DmaLoad{.region = kArena, .dram_addr = 0, .sram_addr = 64, .size0 = 24, .size1 = 1, .size2 = 1},
      Signal{.from = 0, .to = 1},
      Wait{.at = 1, .from = 0},
      Conv2d{.act = 1,
             .has_bias = 1,
             .groups = 1,
             .in_addr = 64,
             .in_h = 1,
             .in_w = 3,
             .in_c = 2,
             .in_row_pitch = 24,
             .in_pixel_pitch = 8,
             .out_addr = 128,
             .out_h = 1,
             .out_w = 3,
             .out_c = 1,
             .out_row_pitch = 12,
             .out_pixel_pitch = 4,
             .weight_addr = 0,
             .bias_addr = 8,
             .kernel_h = 1,
             .kernel_w = 1,
             .stride_h = 1,
             .stride_w = 1,
             .dilation_h = 1,
             .dilation_w = 1},
      Signal{.from = 1, .to = 0},
      Wait{.at = 0, .from = 1},
      DmaStore{.region = kArena, .dram_addr = 64, .sram_addr = 128, .size0 = 12, .size1 = 1, .size2 = 1},
      End{}};
  const std::vector<uint64_t> words = encode(stream);
  const std::span<const std::byte> constants[] = {std::as_bytes(std::span(weights))};
  Machine machine(small_spec(), words, constants, 128);
  const float input[] = {1, 1, 2, 5, -3, -7};
  std::memcpy(machine.arena(), input, sizeof input);
  machine.run();
  float output[3];
  std::memcpy(output, machine.arena() + 64, sizeof output);
  EXPECT_THAT(output, testing::ElementsAre(1.5F, 0.0F, 1.5F));
  EXPECT_GT(machine.timing().cycles, 0);
  machine.run();  // a machine runs again
}

// a (2, 3) times b ((1, 4), (-1, 0.5)) is (-1, 9.5); with (0.25, -7) from the output before (-0.75, 2.5); bounds -1
// and 2.
TEST(Machine, AddsWhatTheOutputHeldAndThenBounds) {
  const std::vector<Instruction> stream = {
      DmaLoad{.region = kArena, .dram_addr = 0, .sram_addr = 0, .size0 = 32, .size1 = 1, .size2 = 1},
      Signal{.from = 0, .to = 1},
      Wait{.at = 1, .from = 0},
      Matmul{.act = static_cast<int64_t>(Act::clamp),
             .m = 1,
             .k = 2,
             .n = 2,
             .a_addr = 0,
             .a_pitch = 8,
             .b_addr = 8,
             .b_pitch = 8,
             .out_addr = 24,
             .out_pitch = 8,
             .clamp_lo = float_bits(-1),
             .clamp_hi = float_bits(2),
             .has_addend = 1,
             .add_addr = 24,
             .add_pitch = 8},
      Signal{.from = 1, .to = 0},
      Wait{.at = 0, .from = 1},
      DmaStore{.region = kArena, .dram_addr = 32, .sram_addr = 24, .size0 = 8, .size1 = 1, .size2 = 1},
      End{}};
  const std::vector<uint64_t> words = encode(stream);
  Machine machine(small_spec(), words, {}, 40);
  const float input[] = {2, 3, 1, 4, -1, 0.5F, 0.25F, -7};
  std::memcpy(machine.arena(), input, sizeof input);
  machine.run();
  float output[2];
  std::memcpy(output, machine.arena() + 32, sizeof output);
  EXPECT_THAT(output, testing::ElementsAre(-0.75F, 2.0F));
}

TEST(Machine, RefusesWhatNoSoundProgramDoes) {
  auto run = [](const Instruction& instruction) {
    const std::vector<uint64_t> words = encode(std::vector<Instruction>{instruction, End{}});
    Machine machine(small_spec(), words, {}, 64);
    machine.run();
  };
  EXPECT_ERROR(run(DmaLoad{.region = kArena, .dram_addr = 60, .size0 = 8, .size1 = 1, .size2 = 1}), InvalidModel,
               "instruction 0 (dma_load", "what is moved lies in the arena of 64 bytes");
  EXPECT_ERROR(run(DmaLoad{.region = kArena, .sram_addr = 1020, .size0 = 8, .size1 = 1, .size2 = 1}), InvalidModel,
               "what is moved lies in the scratchpad of 1024 bytes");
  EXPECT_ERROR(run(DmaLoad{.region = 0, .size0 = 8, .size1 = 1, .size2 = 1}), InvalidModel,
               "reaches bytes [0, +8) of a region of 0");
  EXPECT_ERROR(run(DmaStore{.region = kArena, .sram_addr = 0, .size0 = 8, .size1 = 1, .size2 = 1}), InvalidModel,
               "reads scratchpad that was never written");
  EXPECT_ERROR(run(Activation{.act = 1, .rows = 1, .channels = 2, .out_addr = 16}), InvalidModel, "never written");
}

// A window that sees padding alone has the mean 0, and no divisor.
TEST(Machine, AMeanOfNothingDividesByNothing) {
  const std::vector<Instruction> stream = {
      DmaLoad{.region = kArena, .dram_addr = 0, .sram_addr = 0, .size0 = 1, .size1 = 1, .size2 = 1},
      Signal{.from = 0, .to = 2},
      Wait{.at = 2, .from = 0},
      Pool{.dtype = static_cast<int64_t>(DType::i8),
           .op = static_cast<int64_t>(PoolOp::mean),
           .channels = 1,
           .in_h = 1,
           .in_w = 1,
           .in_row_pitch = 1,
           .in_pixel_pitch = 1,
           .out_addr = 8,
           .out_h = 1,
           .out_w = 1,
           .out_row_pitch = 1,
           .out_pixel_pitch = 1,
           .kernel_h = 1,
           .kernel_w = 1,
           .stride_h = 1,
           .stride_w = 1,
           .dilation_h = 1,
           .dilation_w = 1,
           .pad_top = 9,
           .zero = 5},
      Signal{.from = 2, .to = 0},
      Wait{.at = 0, .from = 2},
      DmaStore{.region = kArena, .dram_addr = 1, .sram_addr = 8, .size0 = 1, .size1 = 1, .size2 = 1},
      End{}};
  Machine machine(small_spec(), encode(stream), {}, 8);
  machine.run();
  EXPECT_EQ(machine.arena()[1], std::byte{5});
}

// The sheet's 2^32 bytes are there for whoever touches them.
TEST(Machine, ASheetWith4GiBOfScratchpadTakesWhatIsTouched) {
  Spec spec = small_spec();
  spec.sram[0].bytes = int64_t{1} << 32;
  const std::vector<Instruction> stream = {
      DmaLoad{.region = kArena, .sram_addr = 4096, .size0 = 8, .size1 = 1, .size2 = 1}, End{}};
  Machine machine(spec, encode(stream), {}, 64);
  machine.run();
  EXPECT_EQ(machine.bytes(), 64 + 2 * 4104);
}

}  // namespace
}  // namespace hetnn::sim
