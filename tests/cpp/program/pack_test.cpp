// Packing: what is written is read back, and whatever else is read is refused with a message.
#include "hetnn/program/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "expect_error.h"
#include "hetnn/program/hash.h"

namespace hetnn::program {
namespace {

using testing::HasSubstr;

Blob blob_of(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {owner, *owner};
}

std::vector<std::byte> counting(size_t size) {
  std::vector<std::byte> out(size);
  for (size_t k = 0; k < size; ++k) out[k] = static_cast<std::byte>(k * 7 + 1);
  return out;
}

// Every kind of buffer, parameter and subprogram once.
Program example() {
  const Dim h = Dim::symbol("h");
  Program p;
  p.symbols = {{"h", 1, 64, 8}};
  p.buffers = {
      {.name = "x", .shape = {1, 3, h, 4}, .place = Place::input},
      {.name = "w", .shape = {3}, .place = Place::constant, .offset_bytes = 64, .size_bytes = 12},
      {.name = "t", .shape = {1, 3, h, 4}, .layout = Layout::nhwc, .pitch = 16},
      {.name = "u", .shape = {1, 3, h, 4}, .layout = Layout::nhwc, .pitch = 3},
      {.name = "y", .shape = {1, 3, h, 4}, .place = Place::output},
  };
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 4}};
  const Params params = {{"dim", floor_div(h + 1, 2)},
                         {"count", Dim(3)},
                         {"real", 0.1},
                         {"limit", -std::numeric_limits<double>::infinity()},
                         {"text", std::string("relu")},
                         {"dims", std::vector<Dim>{1, h}},
                         {"reals", std::vector<double>{0.5, std::numeric_limits<double>::infinity()}}};
  NpuVariant variant{.bindings = {{"h", 2}},
                     .words_offset_bytes = 128,
                     .word_count = 4,
                     .image_offset_bytes = 192,
                     .image_bytes = 8,
                     .dram_bytes = 256,
                     .sram_peak_bytes = 32,
                     .cycles = 99,
                     .inputs = {{2, 0, DType::f32, Layout::nhwc}},
                     .outputs = {{3, 128, DType::f32, Layout::nhwc}},
                     .layers = {{"conv", "conv2d", 0, 4, 99, 64, 1000}}};
  p.subprograms = {
      {"cpu0", "cpu", "cpu", {0}, {2}, {}, CpuCode{{{"add", {0, 1}, {2}, params, "add_1"}}}},
      {"npu0", "npu", "npu", {2}, {3}, {0}, NpuCode{"{}", {variant}, "h"}},
      {"null0", "null", "null", {3}, {4}, {1}, NullCode{}},
  };
  p.weights = blob_of(counting(256));
  p.report_json = R"({"nodes":1})";
  p.target_json = R"({"name":"cpu"})";
  p.hetnn_version = "0.1.0";
  return p;
}

std::string refusal(const std::vector<std::byte>& image) {
  try {
    unpack(blob_of(image), "image");
  } catch (const InvalidModel& error) {
    return error.what();
  }
  return "accepted";
}

// A copy of the image with another program text, its hashes made anew: what a careful forger would write.
std::vector<std::byte> forged(const std::string& from, const std::string& to) {
  Program p = example();
  std::string structure = structure_json(p);
  const size_t at = structure.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  structure.replace(at, from.size(), to);
  const Program other = parse_structure(structure, "image");
  p.symbols = other.symbols;
  p.buffers = other.buffers;
  p.inputs = other.inputs;
  p.outputs = other.outputs;
  p.subprograms = other.subprograms;
  return pack(p);
}

TEST(Pack, ReadsBackWhatWasWritten) {
  const Program p = example();
  const std::vector<std::byte> image = pack(p);
  const Program q = unpack(blob_of(image));
  EXPECT_EQ(q.symbols, p.symbols);
  EXPECT_EQ(q.buffers, p.buffers);
  EXPECT_EQ(q.inputs, p.inputs);
  EXPECT_EQ(q.outputs, p.outputs);
  EXPECT_EQ(q.subprograms, p.subprograms);
  EXPECT_EQ(q.report_json, p.report_json);
  EXPECT_EQ(q.target_json, p.target_json);
  EXPECT_EQ(q.hetnn_version, p.hetnn_version);
  EXPECT_TRUE(std::ranges::equal(q.weights.bytes, p.weights.bytes));
  EXPECT_EQ(pack(q), image);
}

TEST(Pack, ReadsBackNamesThatAreNoUtf8) {
  Program p = example();
  p.buffers[2].name = "\xff\xfe";
  const std::vector<std::byte> image = pack(p);
  EXPECT_EQ(pack(unpack(blob_of(image))), image);
}

TEST(Pack, CopiesNoWeights) {
  const Blob image = blob_of(pack(example()));
  const Program q = unpack(image);
  EXPECT_EQ(q.weights.bytes.data() + q.weights.bytes.size(), image.bytes.data() + image.bytes.size());
  EXPECT_EQ((q.weights.bytes.data() - image.bytes.data()) % kAlignment, 0);
}

TEST(Pack, EveryFlippedByteIsNoticed) {
  const std::vector<std::byte> image = pack(example());
  for (size_t k = 0; k < image.size(); ++k) {
    for (const int bit : {0, 5}) {
      std::vector<std::byte> altered = image;
      altered[k] ^= static_cast<std::byte>(1 << bit);
      EXPECT_THAT(refusal(altered), HasSubstr("image")) << "byte " << k << " of " << image.size();
    }
  }
}

TEST(Pack, EveryTruncationIsNoticed) {
  const std::vector<std::byte> image = pack(example());
  for (size_t size = 0; size < image.size(); ++size) {
    EXPECT_THAT(refusal({image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size)}), HasSubstr("image"))
        << size;
  }
  std::vector<std::byte> longer = image;
  longer.resize(image.size() + 64);
  EXPECT_THAT(refusal(longer), HasSubstr("follow the header"));
}

TEST(Pack, RandomDamageIsNoticed) {
  const std::vector<std::byte> image = pack(example());
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> altered = image;
    for (unsigned k = 0; k <= random() % 8; ++k) altered[random() % altered.size()] = static_cast<std::byte>(random());
    if (altered == image) continue;
    EXPECT_THAT(refusal(altered), HasSubstr("image")) << "round " << round;
  }
}

// With sound hashes only the checks of the structure stand between a damaged text and the runtime.
TEST(Pack, DamagedStructureIsRefusedOrSound) {
  const std::string structure = structure_json(example());
  std::mt19937 random(2);
  constexpr std::string_view kLetters = "{}[]\",:-0123456789ehx*()";
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string altered = structure;
    for (unsigned k = 0; k <= random() % 3; ++k)
      altered[random() % altered.size()] = kLetters[random() % kLetters.size()];
    try {
      Program p = parse_structure(altered, "image");
      p.weights = example().weights;
      validate(p, "image");
    } catch (const InvalidModel&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

struct Forgery {
  const char* from;
  const char* to;
  const char* message;
};

TEST(Pack, NamesTheFieldThatMakesNoSense) {
  for (const Forgery& f : std::vector<Forgery>{
           {R"("offset_bytes":64,"size_bytes":12)", R"("offset_bytes":256,"size_bytes":12)", "buffers[1]: bytes [256"},
           {R"("offset_bytes":64,"size_bytes":12)", R"("offset_bytes":65,"size_bytes":12)", "no multiple of 64"},
           {R"("offset_bytes":64,"size_bytes":12)", R"("offset_bytes":64,"size_bytes":8)", "do not hold [3]"},
           {R"("offset_bytes":64,"size_bytes":12)", R"("offset_bytes":-64,"size_bytes":12)", "lie outside"},
           {R"("pitch":16)", R"("pitch":2)", "pitch 2 is below 3 channels"},
           {R"("min":1,"max":64)", R"("min":9,"max":8)", "has the range 9..8"},
           {R"("name":"x","buffer":0)", R"("name":"x","buffer":7)", "there is no buffer 7"},
           {R"("name":"x","buffer":0)", R"("name":"x","buffer":2)", "lies elsewhere"},
           {R"("inputs":[0,1],"outputs":[2])", R"("inputs":[0,1],"outputs":[1])",
            "buffer 1 is an input or a constant and is written"},
           {R"("inputs":[0,1],"outputs":[2])", R"("inputs":[0,1],"outputs":[0])", "and is written"},
           {R"("depends_on":[0])", R"("depends_on":[1])", "1 is no earlier subprogram"},
           {R"("word_count":4)", R"("word_count":400)", "words: bytes [128"},
           {R"("image_bytes":8)", R"("image_bytes":80)", "image: bytes [192"},
           {R"("dram_bytes":256)", R"("dram_bytes":100)", "lies outside the accelerator's memory"},
           {R"("bindings":{"h":2})", R"("bindings":{"h":2000000000000})", "larger than the accelerator's memory"},
           {R"("bindings":{"h":2})", R"("bindings":{})", "bindings: the symbol 'h' has no value"},
           {R"("buffer":3,"offset_bytes":128,"dtype":"f32")", R"("buffer":3,"offset_bytes":128,"dtype":"i8")",
            "holds f32 outside and i8 inside"},
           {R"("kind":"cpu")", R"("kind":"npu")", "'npu' with code for cpu"},
           {R"("dims":[1,"h"])", R"("dims":[1,"w"])", "the symbol 'w' is not declared"},
       }) {
    EXPECT_THAT(refusal(forged(f.from, f.to)), AllOf(HasSubstr("image: "), HasSubstr(f.message))) << f.to;
  }
}

TEST(Pack, NamesKeysThatAreUnknownOrMissingAndValuesOfAnotherKind) {
  for (const Forgery& f : std::vector<Forgery>{
           {R"("pitch":16)", R"("pitch":16,"tilt":1)", "program.buffers[2]: key 'tilt' is unknown"},
           {R"("pitch":16,)", "", "program.buffers[2]: key 'pitch' is missing"},
           {R"("min":1)", R"("min":"one")", "program.symbols[0].min: expected an integer; got \"one\""},
           {R"("place":"arena")", R"("place":"attic")", "expected input, output, arena or constant; got \"attic\""},
           {R"("dtype":"f32")", R"("dtype":"f33")", "expected an element type; got \"f33\""},
           {R"("null":{})", R"("tpu":{})", "expected code for cpu, npu, reference or null"},
       }) {
    std::string structure = structure_json(example());
    structure.replace(structure.find(f.from), std::strlen(f.from), f.to);
    try {
      parse_structure(structure, "image");
      ADD_FAILURE() << f.to << " was accepted";
    } catch (const InvalidModel& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("image: "), HasSubstr(f.message)));
    }
  }
}

TEST(Hash, EveryBitAndTheLengthCount) {
  const std::vector<std::byte> bytes = counting(100);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const uint64_t whole = hash_bytes(std::span(bytes).first(size));
    EXPECT_NE(whole, hash_bytes(std::span(bytes).first(size + 1)));
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      std::vector<std::byte> altered(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      altered[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      ASSERT_NE(whole, hash_bytes(altered)) << "bit " << bit << " of " << size << " bytes";
    }
  }
  // Zeros of another number are told apart as well.
  EXPECT_NE(hash_bytes(std::vector<std::byte>(31)), hash_bytes(std::vector<std::byte>(32)));
}

class File : public testing::Test {
 protected:
  File() : folder_(std::filesystem::temp_directory_path() / "hetnn_pack_test") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~File() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(File, IsWrittenWholeAndMapped) {
  const std::string path = folder_ / "net.hetnn";
  const std::vector<std::byte> image = pack(example());
  write_file(path, counting(10));
  write_file(path, image);
  const Blob mapped = map_file(path);
  EXPECT_TRUE(std::ranges::equal(mapped.bytes, image));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_EQ(pack(unpack(mapped)), image);
}

TEST_F(File, LeavesNothingBehindWhenItCannotBeWritten) {
  std::filesystem::create_directories(folder_ / "taken" / "inside");
  EXPECT_ERROR(write_file(folder_ / "taken", counting(10)), InvalidModel, "cannot be renamed into place: ", "taken");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_ERROR(write_file(folder_ / "absent" / "net.hetnn", counting(10)), InvalidModel,
               "cannot be created: No such file");
}

TEST_F(File, SaysWhyItCannotBeRead) {
  auto reason = [](const std::string& path) -> std::string {
    try {
      map_file(path);
    } catch (const InvalidModel& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_THAT(reason(folder_ / "absent"), HasSubstr("No such file"));
  EXPECT_THAT(reason(folder_), HasSubstr("is no file"));
  std::ofstream(folder_ / "empty").close();
  EXPECT_THAT(reason(folder_ / "empty"), HasSubstr("is empty"));
}

}  // namespace
}  // namespace hetnn::program
