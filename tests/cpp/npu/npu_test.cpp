// The NPU's words, its closed forms and its data sheets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "expect_error.h"
#include "hetnn/npu/access.h"
#include "hetnn/npu/isa.h"
#include "hetnn/npu/spec.h"
#include "hetnn/npu/timing.h"

namespace hetnn::npu {
namespace {

// An instruction of every kind, with random values in all fields.
std::vector<Instruction> random_stream(std::mt19937_64& random) {
  std::vector<Instruction> out;
  const auto fill = [&](auto instruction) {
    const InstructionDef& row = instruction_table()[static_cast<size_t>(instruction.kOpcode)];
    size_t k = 0;
    visit_fields(instruction, [&](int64_t& value) {
      const FieldDef& field = row.fields[k++];
      value = static_cast<int64_t>(random() & ((uint64_t{1} << field.bits) - 1));
      if (field.is_signed && value >= int64_t{1} << (field.bits - 1)) value -= int64_t{1} << field.bits;
    });
    out.push_back(instruction);
  };
  fill(End{}), fill(Signal{}), fill(Wait{}), fill(DmaLoad{}), fill(DmaStore{}), fill(Conv2d{}), fill(Matmul{});
  fill(Elementwise{}), fill(Pool{}), fill(Activation{}), fill(Move{}), fill(Reduce{}), fill(Softmax{}),
      fill(Normalize{});
  return out;
}

TEST(Isa, EveryInstructionSurvivesWordsAndText) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::vector<Instruction> stream = random_stream(random);
    const std::vector<uint64_t> words = encode(stream);
    ASSERT_EQ(decode(words), stream);
    ASSERT_EQ(assemble(disassemble(words)), words);
  }
}

TEST(Isa, AValueBeyondItsFieldIsRefused) {
  std::vector<uint64_t> words;
  EXPECT_ERROR(encode(Conv2d{.kernel_h = 1 << 16}, words), DoesNotFit, "kernel_h");
}

TEST(Isa, WordsThatAreNoInstructionsAreRefused) {
  EXPECT_ERROR(decode(std::vector<uint64_t>{0xff}), InvalidModel, "word 0 has the unknown opcode 255; the highest is ");
  std::vector<uint64_t> cut = encode(std::vector<Instruction>{Conv2d{}});
  cut.pop_back();
  EXPECT_ERROR(decode(cut), InvalidModel, "conv2d at word 0 takes ", " words");
}

// By hand: 4x4 array, weight stationary, 9 pixels, 8 products, 6 filters: 2·2 folds of (8 + 4 + 9 - 2), less 1.
TEST(Timing, SystolicCyclesByHand) {
  Mac mac;
  mac.kind = MacKind::systolic;
  mac.rows = mac.cols = 4;
  EXPECT_EQ(systolic_cycles(mac, 9, 8, 6), 2 * 2 * (8 + 4 + 9 - 2) - 1);
  mac.dataflow = Dataflow::os;
  EXPECT_EQ(systolic_cycles(mac, 9, 8, 6), 3 * 2 * (4 + 4 + 8 - 2) - 1);
  mac.dataflow = Dataflow::is;
  EXPECT_EQ(systolic_cycles(mac, 9, 8, 6), 2 * 3 * (8 + 4 + 6 - 2) - 1);
}

TEST(Timing, EnginesOverlapUnlessATokenHoldsThem) {
  const Spec spec = systolic_spec(8, 8);
  const Conv2d conv{
      .groups = 1, .in_h = 4, .in_w = 4, .in_c = 8, .out_h = 4, .out_w = 4, .out_c = 8, .kernel_h = 1, .kernel_w = 1};
  const Activation act{.act = 1, .rows = 1000, .channels = 8};
  const int64_t mac = cost_of(spec, conv).cycles, vector = cost_of(spec, act).cycles;
  EXPECT_EQ(vector, 1000);
  EXPECT_EQ(time_stream(spec, std::vector<Instruction>{conv, act}).cycles, std::max(mac, vector));
  const std::vector<Instruction> chained = {conv, Signal{.from = 1, .to = 2}, Wait{.at = 2, .from = 1}, act};
  EXPECT_EQ(time_stream(spec, chained).cycles, mac + vector);
  EXPECT_ERROR(time_stream(spec, std::vector<Instruction>{Wait{.at = 2, .from = 1}}), InvalidModel, "stand still");
}

TEST(Timing, TransfersTellHowFarTheScratchpadIsUsed) {
  EXPECT_EQ(sram_reach_bytes(DmaLoad{.sram_addr = 64, .size0 = 10, .size1 = 3, .size2 = 1, .sram_stride1 = 16}), 106);
  EXPECT_EQ(sram_reach_bytes(DmaStore{.sram_addr = 8, .size0 = 4, .size1 = 1, .size2 = 2, .sram_stride2 = 100}), 112);
  EXPECT_EQ(sram_reach_bytes(DmaLoad{.sram_addr = 64, .size0 = 10, .size1 = 0, .size2 = 1}), 0);
  EXPECT_EQ(sram_reach_bytes(Activation{.rows = 4, .channels = 4, .in_pitch = 16, .out_addr = 100, .out_pitch = 16}),
            164);
}

// By hand: 5 rows on 2 cores are 3 one behind the other, of 2 steps of 4 cycles and 7 besides.
TEST(Timing, RowsAreWorkedOnOneByOne) {
  Spec spec = systolic_spec(8, 8);
  spec.cores = 2;
  spec.vector.softmax_cycles = 4;
  spec.vector.row_cycles = 7;
  EXPECT_EQ(cost_of(spec, Softmax{.dtype = 4, .rows = 5, .channels = 13}).cycles, 3 * (2 * 4 + 7));
}

TEST(Topology, ReadsBothFormsAndNamesTheLineOfAFault) {
  const auto conv = read_topology("name,h,w,r,s,c,m,stride,\nL1, 8, 8, 3, 3, 4, 16, 2,\n", "t.csv");
  ASSERT_EQ(conv.size(), 1U);
  EXPECT_EQ(conv[0].pixels, 16);  // ceil((8 - 3 + 2) / 2) squared
  EXPECT_EQ(conv[0].products, 36);
  EXPECT_EQ(read_topology("name,M,N,K\ng,5,6,7\n", "g.csv")[0].products, 7);
  EXPECT_ERROR(read_topology("name,M,N,K\ng,5,x,7\n", "g.csv"), InvalidModel, "line 2", "'x'");
}

TEST(Spec, WritesAndReadsBackAndNamesAnUnknownKey) {
  const std::string json = spec_to_json(systolic_spec(16, 32));
  EXPECT_EQ(spec_to_json(parse_spec(json, "s.json")), json);
  std::string wrong = json;
  wrong.replace(wrong.find("\"clock_hz\""), 10, "\"clok_hz\"");
  EXPECT_ERROR(parse_spec(wrong, "s.json"), InvalidModel, "clok_hz", "clock_hz");
}

TEST(Spec, ListsRowsWithTheFiguresOfTheirInstruction) {
  Spec spec = systolic_spec(16, 32);
  spec.ops["softmax"] = spec.ops["layer_norm"] = {{DType::i8}, {}, 4};
  EXPECT_ERROR(parse_spec(spec_to_json(spec), "s.json"), InvalidModel,
               "s.json: vector lacks 'softmax_cycles', which ops.softmax needs");
  spec.vector.softmax_cycles = 3;
  EXPECT_ERROR(parse_spec(spec_to_json(spec), "s.json"), InvalidModel,
               "s.json: vector lacks 'normalize_cycles', which ops.layer_norm needs");
  spec.vector.normalize_cycles = 4;
  EXPECT_EQ(spec_to_json(parse_spec(spec_to_json(spec), "s.json")), spec_to_json(spec));
}

}  // namespace
}  // namespace hetnn::npu
