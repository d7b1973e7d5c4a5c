// Tokens from what must come before what: enough of them, none too many, and a stream without one of them is refused.
#include "hetnn/npu/order.h"

#include <gtest/gtest.h>

#include <random>

#include "expect_error.h"
#include "hetnn/npu/verify.h"

namespace hetnn::npu {
namespace {

constexpr int64_t kArena = static_cast<int64_t>(Region::arena), kBytes = 512;

Spec small_spec() {
  Spec spec = systolic_spec(4, 4);
  spec.sram[0].bytes = kBytes;
  return spec;
}

void verify(std::vector<Instruction> stream) {
  stream.emplace_back(End{});
  verify_stream(small_spec(), stream, kBytes);
}

DmaLoad load(int64_t addr, int64_t bytes) {
  return {.region = kArena, .sram_addr = addr, .size0 = bytes, .size1 = 1, .size2 = 1};
}
DmaStore store(int64_t addr, int64_t bytes) {
  return {.region = kArena, .sram_addr = addr, .size0 = bytes, .size1 = 1, .size2 = 1};
}
Activation copy(int64_t from, int64_t to, int64_t elems, int64_t rows = 1, int64_t pitch = 0) {
  return {.rows = rows, .channels = elems, .in_addr = from, .in_pitch = pitch, .out_addr = to, .out_pitch = pitch};
}
Matmul product(int64_t a, int64_t b, int64_t out) {
  return {
      .m = 2, .k = 2, .n = 2, .a_addr = a, .a_pitch = 8, .b_addr = b, .b_pitch = 8, .out_addr = out, .out_pitch = 8};
}

// Where each token is given and taken: pairs of positions.
std::vector<std::pair<size_t, size_t>> pairs_of(const std::vector<Instruction>& stream) {
  std::vector<std::pair<size_t, size_t>> out;
  for (size_t k = 0; k < stream.size(); ++k) {
    const auto* wait = std::get_if<Wait>(&stream[k]);
    if (!wait) continue;
    // The first signal of its kind that no earlier wait took.
    for (size_t s = 0; s < k; ++s) {
      const auto* signal = std::get_if<Signal>(&stream[s]);
      const bool taken = std::ranges::any_of(out, [&](const auto& pair) { return pair.first == s; });
      if (!signal || signal->from != wait->from || signal->to != wait->at || taken) continue;
      out.emplace_back(s, k);
      break;
    }
  }
  return out;
}

TEST(Order, LoadsComputesAndStoresWithoutTokensAreRefused) {
  EXPECT_ERROR(verify({load(0, 64), copy(0, 128, 16)}), InvalidModel, "instruction 1 (activation",
               "unordered: instruction 0 of engine dma touches the same bytes");
  EXPECT_ERROR(verify({copy(0, 128, 16), store(128, 64)}), InvalidModel, "unordered: instruction 0 of engine vector");
  // What is still read must not be loaded over.
  EXPECT_ERROR(verify({copy(0, 128, 16), load(32, 64)}), InvalidModel, "unordered: instruction 0 of engine vector");
  verify({copy(0, 128, 16), load(64, 64)});
  verify({copy(0, 128, 16), store(0, 64)});  // both read
}

TEST(Order, RowsBesideEachOtherDoNotMeet) {
  // Two engines write every other run of 16 bytes.
  verify({copy(0, 256, 4, 4, 32), DmaLoad{.region = kArena,
                                          .sram_addr = 272,
                                          .size0 = 16,
                                          .size1 = 4,
                                          .size2 = 1,
                                          .dram_stride1 = 16,
                                          .sram_stride1 = 32}});
}

TEST(Order, AThirdEngineMayTellOfAnother) {
  // The matmul waits for the load, the copy for the matmul, so the copy needs no token of the load.
  const Ordered made = ordered(std::vector<Instruction>{load(0, 64), product(0, 16, 128), copy(128, 0, 4)});
  EXPECT_EQ(pairs_of(made.instructions).size(), 2U);
  EXPECT_EQ(made.begins, (std::vector<size_t>{0, 2, 5}));
  verify(made.instructions);
}

TEST(Order, OfRandomStreamsEveryTokenIsNeeded) {
  std::mt19937 random(1);
  const auto at = [&] { return static_cast<int64_t>(random() % 12) * 32; };
  size_t tokens = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Instruction> plain;
    for (int k = 0; k < 24; ++k) {
      switch (random() % 4) {
        case 0:
          plain.emplace_back(load(at(), 48));
          break;
        case 1:
          plain.emplace_back(store(at(), 48));
          break;
        case 2:
          plain.emplace_back(product(at(), at(), at()));
          break;
        default:
          plain.emplace_back(copy(at(), at(), 12));
      }
    }
    const std::vector<Instruction> stream = ordered(plain).instructions;
    verify(stream);
    for (const auto& [given, taken] : pairs_of(stream)) {
      ++tokens;
      std::vector<Instruction> without = stream;
      without.erase(without.begin() + static_cast<ptrdiff_t>(taken));
      without.erase(without.begin() + static_cast<ptrdiff_t>(given));
      EXPECT_ERROR(verify(without), InvalidModel, "unordered");
      // Given too early it says nothing: before the instruction that it stands behind.
      std::vector<Instruction> early = stream;
      size_t behind = given;
      while (engine_of(early[behind]) == Engine::none) --behind;
      std::rotate(early.begin() + static_cast<ptrdiff_t>(behind), early.begin() + static_cast<ptrdiff_t>(given),
                  early.begin() + static_cast<ptrdiff_t>(given) + 1);
      EXPECT_ERROR(verify(early), InvalidModel, "unordered");
    }
  }
  EXPECT_GT(tokens, 1000U);
}

}  // namespace
}  // namespace hetnn::npu
