// The NPU's executor: what code it refuses, and how it says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.h"
#include "hetnn/base/error.h"
#include "hetnn/npu/code.h"
#include "hetnn/npu/spec.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/runtime/executor.h"

namespace hetnn::runtime {
namespace {

// One subgraph of maps [1,3,h,4], with a stream for h = 2.
program::Program example() {
  const Dim h = Dim::symbol("h");
  program::Program p;
  p.symbols = {{"h", 1, 64, 8}};
  p.buffers = {{.name = "t", .shape = {1, 3, h, 4}, .layout = Layout::nhwc, .pitch = 16},
               {.name = "u", .shape = {1, 3, h, 4}, .layout = Layout::nhwc, .pitch = 3}};
  p.subprograms = {{"npu0", "npu", {0}, {1}, {}, {}}};
  auto bytes = std::make_shared<const std::vector<std::byte>>(256);
  p.weights = program::Weights({bytes, *bytes});
  return p;
}

npu::Code code() {
  npu::Spec spec = npu::systolic_spec(4, 4);
  spec.sram[0].bytes = 1024;
  return {npu::spec_to_json(spec),
          {{64, 8}},
          {{.bindings = {{"h", 2}},
            .words_offset_bytes = 128,
            .word_count = 1,  // zeros: an end
            .dram_bytes = 256,
            .sram_peak_bytes = 32,
            .cycles = 0,
            .schedule = "tiled rows=1",
            .inputs = {{0, 0, DType::f32, Layout::nhwc}},
            .outputs = {{1, 128, DType::f32, Layout::nhwc}},
            .layers = {{"conv", "conv2d", 99, 64, 1000, 8, "rows=1", -1}},
            .runs = {{0, 0}}}}};
}

TEST(NpuCode, ReadsBackWhatWasWritten) { EXPECT_EQ(npu::read_code(npu::write_code(code()), "npu0"), code()); }

TEST(NpuExecutor, NamesTheSizesItHas) {
  program::Program p = example();
  p.subprograms[0].code = program::Code::of_text("npu", npu::kCodeVersion, npu::write_code(code()));
  const auto executor = load_executor({p, p.subprograms[0], "npu0"});
  EXPECT_EQ(executor->bound_sizes(), std::vector<Bindings>({{{"h", 2}}}));
  const Bindings other = {{"h", 3}};
  EXPECT_EQ(executor->bind({other, {}, 1}), nullptr);
}

TEST(NpuExecutor, NamesWhatMakesNoSense) {
  struct Forgery {
    const char* from;
    const char* to;
    const char* message;
  };
  for (const Forgery& f : std::vector<Forgery>{
           {R"("constants":[[64,8]])", R"("constants":[[192,80]])", "constants[0]: bytes [192"},
           {R"("constants":[[64,8]])", R"("constants":[[65,8]])", "no multiple of 64"},
           {R"("constants":[[64,8]])", R"("constants":[[64]])",
            "npu0: constants[0] must be [offset, bytes]; found [64]."},
           {R"("word_count":1,)", R"("word_count":400,)", "words: bytes [128"},
           {R"("word_count":1,)", R"("word_count":-1,)",
            "variants[0].word_count must be an integer in [0, 281474976710656]; found -1."},
           {R"("word_count":1,)", R"("word_count":2,)", "its runs have 0 words and an end"},
           {R"("cycles":0,)", R"("cycles":7,)", "variants[0]: its stream takes 0 cycles; stated are 7"},
           {R"("runs":[[0,0]])", R"("runs":[[1,0]])", "a run of 0 words is of layer 1"},
           {R"("runs":[[0,0]])", R"("runs":[[0,1]])", "a run of 1 words is of layer 0"},
           {R"("dram_bytes":256)", R"("dram_bytes":100)", "lies outside the accelerator's memory"},
           {R"("bindings":{"h":2})", R"("bindings":{"h":2000000000000})", "larger than the accelerator's memory"},
           {R"("bindings":{"h":2})", R"("bindings":{})", "bindings: the symbol 'h' has no value"},
           {R"("buffer":1,)", R"("buffer":0,)", "port of buffer 0 where 1 is wanted"},
           {R"("offset_bytes":128,"dtype":"f32")", R"("offset_bytes":128,"dtype":"i8")",
            "holds f32 outside and i8 inside"},
           {R"("variants":[{)", R"("variants":[{"tilt":1,)", "npu0: variants[0] has the unknown key 'tilt'"},
           {R"({"spec":"{)", R"({"spec":"[)", "npu0: not JSON"},
           {R"({"spec")", R"({spec)", "npu0: not JSON: "},
       }) {
    std::string json = npu::write_code(code());
    json.replace(json.find(f.from), std::string(f.from).size(), f.to);
    program::Program p = example();
    p.subprograms[0].code = program::Code::of_text("npu", npu::kCodeVersion, json);
    EXPECT_THAT(
        [&] {
          load_executor({p, p.subprograms[0], "npu0"});
        },
        testing::ThrowsMessage<InvalidModel>(testing::HasSubstr(f.message)))
        << f.to;
  }
}

TEST(NpuExecutor, DramAboveALimitDoesNotFit) {
  npu::Code large = code();
  large.variants[0].dram_bytes = int64_t{1} << 37;
  program::Program p = example();
  p.subprograms[0].code = program::Code::of_text("npu", npu::kCodeVersion, npu::write_code(large));
  EXPECT_ERROR(load_executor({p, p.subprograms[0], "npu0"}), DoesNotFit,
               "npu0: variants[0].dram_bytes is 137438953472; a simulated NPU has at most 68719476736");
}

TEST(Executors, NameTheKindsThereAre) {
  program::Program p = example();
  p.subprograms[0].code.kind = "tpu";
  EXPECT_THAT(
      [&] {
        load_executor({p, p.subprograms[0], "tpu0"});
      },
      testing::ThrowsMessage<InvalidModel>(
          testing::HasSubstr("tpu0: its code is for a device of kind 'tpu'; the kinds that run here are cpu, "
                             "npu, null. Install the package that brings it, or compile for one of these.")));
}

TEST(Executors, RefuseCodeOfAnotherVersion) {
  for (const auto& [kind, version] : {std::pair{"cpu", program::kCpuCodeVersion}, {"npu", npu::kCodeVersion}}) {
    program::Program p = example();
    p.subprograms[0].code = {.kind = kind, .version = 99, .bytes = {}};
    EXPECT_THAT(
        [&] {
          load_executor({p, p.subprograms[0], "sub"});
        },
        testing::ThrowsMessage<InvalidModel>(testing::HasSubstr(
            text("sub: its code for '", kind, "' is of version 99; this version of hetnn reads ", version))));
  }
}

}  // namespace
}  // namespace hetnn::runtime
