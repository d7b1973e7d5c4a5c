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
#include "hetnn/base/error.h"
#include "hetnn/program/cpu_code.h"
#include "hetnn/program/hash.h"
#include "hetnn/program/validate.h"

namespace hetnn::program {
namespace {

using testing::HasSubstr;

template <typename Bytes>
Blob blob_of(Bytes bytes) {
  auto owner = std::make_shared<const Bytes>(std::move(bytes));
  return {owner, *owner};
}

std::vector<std::byte> counting(size_t size) {
  std::vector<std::byte> out(size);
  for (size_t k = 0; k < size; ++k) out[k] = static_cast<std::byte>(k * 7 + 1);
  return out;
}

// Every kind of buffer and parameter once, code that nobody here knows, and none.
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
      {.name = "a", .shape = {1, 3, h, 4}},
      {.name = "b", .shape = {1, 3, h, 4}},
  };
  p.inputs = {{"x", 0}};
  p.outputs = {{"y", 4}};
  // Attributes of every kind, and a step with an operand.
  const auto op = [](std::string_view name) { return &ops::OpTable::global().get(name); };
  const double kInf = std::numeric_limits<double>::infinity();
  std::vector<Command> commands(4);
  commands[0] = {.op = op("nary"),
                 .attrs = {{"op", std::string("add")}, {"coefficients", std::vector<double>{0.5, kInf}}},
                 .inputs = {0, 0},
                 .outputs = {5},
                 .steps = {},
                 .variant = "nary",
                 .options = {{"group", Dim(3)}},
                 .node = "sum"};
  commands[1] = {.op = op("slice"),
                 .attrs = {{"axis", Dim(2)}, {"start", Dim(0)}, {"end", h}, {"inside", true}},
                 .inputs = {5},
                 .outputs = {6},
                 .steps = {},
                 .variant = "",
                 .options = {},
                 .node = "cut"};
  commands[2] = {.op = op("reshape"),
                 .attrs = {{"shape", std::vector<Dim>{1, 3, h, 4}}},
                 .inputs = {6},
                 .outputs = {5},
                 .steps = {},
                 .variant = "",
                 .options = {},
                 .node = "same"};
  commands[3] = {.op = op("clamp"),
                 .attrs = {{"min", -kInf}, {"max", 0.1}},
                 .inputs = {5, 1},
                 .outputs = {2},
                 .steps = {{op("relu"), {}, -1}, {op("prelu"), {}, 1}},
                 .variant = "unary",
                 .options = {},
                 .node = "clip"};
  p.subprograms = {
      {"cpu0", "cpu", {0}, {2}, {}, write_cpu_code({commands})},
      {"dsp0", "dsp", {2}, {3}, {0}, {.kind = "dsp", .version = 7, .bytes = counting(11)}},
      {"null0", "null", {3}, {4}, {1}, {.kind = "null", .version = 1, .bytes = {}}},
  };
  p.weights = Weights(blob_of(counting(256)));
  p.target_json = R"({"name":"cpu","devices":[{"name":"cpu","kind":"cpu"}]})";
  p.hetnn_version = "0.1.0";
  return p;
}

std::vector<std::byte> code_of(const Program& p) {
  std::vector<std::byte> out;
  for (const Subprogram& s : p.subprograms) out.insert(out.end(), s.code.bytes.begin(), s.code.bytes.end());
  return out;
}

std::string refusal(const Image& image) {
  try {
    unpack(blob_of(image), "image");
  } catch (const InvalidModel& error) {
    return error.what();
  }
  return "accepted";
}

// A copy of the image with another program text, its hashes made anew: what a careful forger would write.
Image forged(const std::string& from, const std::string& to) {
  Program p = example();
  std::string structure = structure_json(p);
  const size_t at = structure.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  structure.replace(at, from.size(), to);
  const Program other = parse_structure(structure, code_of(p), "image");
  p.symbols = other.symbols;
  p.buffers = other.buffers;
  p.inputs = other.inputs;
  p.outputs = other.outputs;
  p.subprograms = other.subprograms;
  return pack(p);
}

TEST(Pack, ReadsBackWhatWasWritten) {
  const Program p = example();
  const Image image = pack(p);
  const Program q = unpack(blob_of(image));
  EXPECT_EQ(q.symbols, p.symbols);
  EXPECT_EQ(q.buffers, p.buffers);
  EXPECT_EQ(q.inputs, p.inputs);
  EXPECT_EQ(q.outputs, p.outputs);
  EXPECT_EQ(q.subprograms, p.subprograms);
  EXPECT_EQ(q.report_json.read(), p.report_json.read());
  EXPECT_EQ(q.target_json, p.target_json);
  EXPECT_EQ(q.hetnn_version, p.hetnn_version);
  EXPECT_TRUE(std::ranges::equal(q.weights.at(0, 256), p.weights.at(0, 256)));
  EXPECT_EQ(pack(q), image);
}

TEST(Pack, ReadsBackNamesThatAreNoUtf8) {
  Program p = example();
  p.buffers[2].name = "\xff\xfe";
  const Image image = pack(p);
  EXPECT_EQ(pack(unpack(blob_of(image))), image);
}

TEST(Pack, CopiesNoWeights) {
  const Blob image = blob_of(pack(example()));
  const Program q = unpack(image);
  const std::span<const std::byte> weights = q.weights.at(0, 256);
  const auto code_bytes = static_cast<std::ptrdiff_t>(code_of(q).size());
  EXPECT_EQ(weights.data() + weights.size() + code_bytes, image.bytes.data() + image.bytes.size());
  EXPECT_EQ((weights.data() - image.bytes.data()) % kAlignment, 0);
}

TEST(Pack, EveryFlippedByteIsNoticed) {
  const Image image = pack(example());
  for (size_t k = 0; k < image.size(); ++k) {
    for (const int bit : {0, 5}) {
      Image altered = image;
      altered[k] ^= static_cast<std::byte>(1 << bit);
      EXPECT_THAT(refusal(altered), HasSubstr("image")) << "byte " << k << " of " << image.size();
    }
  }
}

TEST(Pack, EveryTruncationIsNoticed) {
  const Image image = pack(example());
  for (size_t size = 0; size < image.size(); ++size) {
    EXPECT_THAT(refusal({image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size)}), HasSubstr("image"))
        << size;
  }
  Image longer = image;
  longer.resize(image.size() + 64);
  EXPECT_THAT(refusal(longer), HasSubstr("follow the header"));
}

// Loading takes a sum of the weights that finds accidents; a forger who keeps it is found by their SHA-256.
TEST(Pack, VerifyReadsAllWeights) {
  Image image = pack(example());
  EXPECT_NO_THROW(verify_weights(blob_of(image), "image"));
  const Program p = unpack(blob_of(image), "image");
  const std::string_view all(reinterpret_cast<const char*>(image.data()), image.size());
  image[all.size() - code_of(p).size() - 1] ^= std::byte{1};
  EXPECT_ERROR(verify_weights(blob_of(image), "image"), InvalidModel, "image: weights_hash does not fit its bytes");
}

// Blobs of 12 and 5000 bytes, the second one twice, and of 100.
Program of_blobs() {
  Program p = example();
  p.weights = {};
  for (const size_t size : {12, 5000, 5000, 100}) p.weights.append(blob_of(counting(size)));
  p.buffers[1].offset_bytes = 0;
  return p;
}

TEST(Blobs, AreWhatTheyWereBeforePacking) {
  const Image image = pack(of_blobs());
  const Program q = unpack(blob_of(image), "image");
  ASSERT_EQ(q.weights.blobs_from(0).size(), 4);
  EXPECT_EQ(q.weights.size_bytes(), of_blobs().weights.size_bytes());
  EXPECT_TRUE(q.weights.holds(64, 5000));
  EXPECT_FALSE(q.weights.holds(0, 100));  // beyond the first
  EXPECT_EQ(pack(q), image);
  EXPECT_EQ(put_together(take_apart(image, "image"), q.hetnn_version), image);
}

TEST(Blobs, TileTheWeights) {
  const Image image = pack(of_blobs());
  const auto with = [&](const std::string& blobs) {
    Pieces pieces = take_apart(image, "image");
    const size_t at = pieces.program.find("\"blobs\"");
    pieces.program = pieces.program.substr(0, at) + "\"blobs\": " + blobs + "}";
    return refusal(put_together(pieces, "0.1.0"));
  };
  EXPECT_EQ(with("[12, 5000, 5000, 100]"), "accepted");
  EXPECT_THAT(with("[12, 5000, 5000]"), HasSubstr("image: its blobs take 10120 bytes of weights; there are 10276"));
  EXPECT_THAT(with("[12, 5000, 5000, 101]"), HasSubstr("blobs[3] takes 101 bytes from byte 10176"));
  EXPECT_THAT(with("[12, 5000, 5000, 100, 1]"), HasSubstr("blobs[4] takes 1 bytes"));
  EXPECT_THAT(with("[12, 4900, 5000, 100]"), HasSubstr("there is something before blobs[2]"));
  EXPECT_THAT(with("[12, 0, 5000, 5000, 100]"), HasSubstr("blobs[1] must be an integer"));
  EXPECT_THAT(with(R"([{"bytes": 1, "hash": "../x", "sum": "0"}])"), HasSubstr("64 hexadecimal digits"));
}

class PartsTest : public testing::Test {
 protected:
  PartsTest() : folder_(std::filesystem::path(testing::TempDir()) / "parts") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~PartsTest() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return (folder_ / "x.hetnn").string(); }

  const std::filesystem::path folder_;
};

TEST_F(PartsTest, LargeBlobsAreFilesBesideTheImage) {
  const Program p = of_blobs();
  const Split made = split(p);
  ASSERT_EQ(made.parts.size(), 1);
  EXPECT_EQ(made.parts[0].hash, content_hash(counting(5000)));
  EXPECT_LT(made.image.size(), pack(p).size() - 9000);
  write_file(file(), made.image);
  const std::string part = part_path(folder_.string(), made.parts[0].hash);
  EXPECT_ERROR(read_program(file(), "image"), InvalidModel, "image: its weights in '" + part + "' are gone");
  write_file(part, made.parts[0].bytes);
  for (const bool copy : {false, true}) EXPECT_EQ(pack(read_program(file(), "image", copy)), pack(p));
  EXPECT_EQ(split(read_program(file(), "image")).image, made.image);
  EXPECT_THAT(refusal(made.image), HasSubstr("stand in a file of their own, which is sought beside the executable's"));
  EXPECT_NO_THROW(verify_weights(file(), "image"));
  std::vector<std::byte> altered(made.parts[0].bytes.begin(), made.parts[0].bytes.end());
  altered[4999] ^= std::byte{1};
  write_file(part, altered);
  EXPECT_ERROR(read_program(file(), "image"), InvalidModel, "image: its weights in '" + part + "' were altered");
  EXPECT_ERROR(verify_weights(file(), "image"), InvalidModel, "image: its weights in '" + part + "' were altered");
  altered.pop_back();
  write_file(part, altered);
  EXPECT_ERROR(read_program(file(), "image"), InvalidModel, "' should take 5000 bytes; they have 4999.");
}

TEST_F(PartsTest, WithoutLargeBlobsTheImageIsWhole) {
  const Split made = split(example());
  EXPECT_TRUE(made.parts.empty());
  EXPECT_EQ(made.image, pack(example()));
}

TEST(Pack, RandomDamageIsNoticed) {
  const Image image = pack(example());
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    Image altered = image;
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
      Program p = parse_structure(altered, code_of(example()), "image");
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
           {R"("offset_bytes":64,"size_bytes":12)", R"("offset_bytes":1000000,"size_bytes":12)", "lie outside"},
           {R"("pitch":16)", R"("pitch":2)", "pitch 2 is below 3 channels"},
           {R"("min":1,"max":64)", R"("min":9,"max":8)", "has the range 9..8"},
           {R"("name":"x","buffer":0)", R"("name":"x","buffer":7)", "there is no buffer 7"},
           {R"("name":"x","buffer":0)", R"("name":"x","buffer":2)", "lies elsewhere"},
           {R"("inputs":[0],"outputs":[2])", R"("inputs":[0],"outputs":[1])",
            "buffer 1 is an input or a constant and is written"},
           {R"("inputs":[0],"outputs":[2])", R"("inputs":[0],"outputs":[0])", "and is written"},
           {R"("depends_on":[0])", R"("depends_on":[1])", "1 is no earlier subprogram"},
           {R"("depends_on":[0])", R"("depends_on":[])", "depends_on: 0 is missing, which writes buffer 2"},
           {R"("outputs":[3])", R"("outputs":[2])", "buffer 2 is written by another subprogram too"},
       }) {
    EXPECT_THAT(refusal(forged(f.from, f.to)), AllOf(HasSubstr("image: "), HasSubstr(f.message))) << f.to;
  }
}

TEST(Pack, PackedMeansConstant) {
  EXPECT_THAT(refusal(forged(R"("pitch":16,"place":"arena","offset_bytes":0,"size_bytes":0,"packed":false)",
                             R"("pitch":16,"place":"arena","offset_bytes":0,"size_bytes":0,"packed":true)")),
              HasSubstr("buffers[2]: it is packed and no constant"));
}

TEST(Pack, ABufferPlacedAsInputOrOutputHasAPort) {
  EXPECT_THAT(refusal(forged(R"("inputs":[{"name":"x","buffer":0}])", R"("inputs":[])")),
              HasSubstr("buffers[0]: it is an input or output of the caller that no port and no state names"));
  EXPECT_THAT(refusal(forged(R"("outputs":[{"name":"y","buffer":4}])", R"("outputs":[])")),
              HasSubstr("buffers[4]: it is an input or output of the caller"));
}

TEST(Pack, ReportAndTargetAreReadBySchema) {
  for (const auto& [report, message] : {std::pair{"null", "the report must be of type \"object\"; found null"},
                                        {R"({"nodes":1})", "the report lacks"}}) {
    Program p = example();
    p.report_json = report;
    EXPECT_THAT(refusal(pack(p)), HasSubstr(message));
  }
  for (const auto& [target, message] :
       {std::pair{"null", "the target must be of type \"object\"; found null"},
        {R"({"devices":[{"name":"cpu"}]})", "devices[0] lacks \"kind\""},
        {R"({"devices":[{"name":1,"kind":"cpu"}]})", "devices[0].name must be of type \"string\"; found 1"}}) {
    Program p = example();
    p.target_json = target;
    EXPECT_THAT(refusal(pack(p)), HasSubstr(message));
  }
}

TEST(Pack, PiecesAreTheWholeImage) {
  const Image image = pack(example());
  const Pieces pieces = take_apart(image, "image");
  EXPECT_THAT(pieces.program, AllOf(HasSubstr(R"("code": {)"), HasSubstr(R"("code_hex": "01080f161d242b32394047")")));
  EXPECT_EQ(put_together(pieces, "0.1.0"), image);
  // Whatever the pieces are, an image comes of them.
  EXPECT_THAT(refusal(put_together({"[[", "", "", {}}, "0.1.0")), HasSubstr("image: not JSON"));
}

TEST(Pack, KeepsFallbacks) {
  Program p = example();
  p.subprograms[0].fallback = Code{"dsp", 3, counting(7)};
  const Image image = pack(p);
  const auto owner = std::make_shared<const Image>(image);
  EXPECT_EQ(unpack({owner, *owner}, "image").subprograms, p.subprograms);
  EXPECT_EQ(put_together(take_apart(image, "image"), p.hetnn_version), image);
}

TEST(Pack, NamesKeysThatAreUnknownOrMissingAndValuesOfAnotherKind) {
  for (const Forgery& f : std::vector<Forgery>{
           {R"("pitch":16)", R"("pitch":16,"tilt":1)", "image: buffers[2] has the unknown key 'tilt'"},
           {R"("pitch":16,)", "", "image: buffers[2] lacks 'pitch', nhwc: elements from pixel to pixel."},
           {R"("min":1)", R"("min":"one")", "image: symbols[0].min must be an integer; found \"one\"."},
           {R"("place":"arena")", R"("place":"attic")",
            "place must be one of input, output, arena, constant; found \"attic\"."},
           {R"("dtype":"f32")", R"("dtype":"f33")", "found \"f33\"."},
           {R"("code_bytes":11)", R"("code_bytes":12000)", "subprograms[1].code_bytes is 12000; "},
           {R"("code_bytes":11)", R"("code_bytes":10)", "bytes of code; there are"},
           {R"("kind":"dsp")", R"("kind":"")", "subprograms[1].kind must be a text that is not empty"},
           {R"("offset_bytes":64)", R"("offset_bytes":-64)", "offset_bytes must be an integer in [0, 281474976710656]"},
       }) {
    std::string structure = structure_json(example());
    structure.replace(structure.find(f.from), std::strlen(f.from), f.to);
    try {
      parse_structure(structure, code_of(example()), "image");
      ADD_FAILURE() << f.to << " was accepted";
    } catch (const InvalidModel& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("image: "), HasSubstr(f.message)));
    }
  }
}

std::string code_refusal(const std::string& from, const std::string& to) {
  Program p = example();
  std::string json(p.subprograms[0].code.as_text(kCpuCodeVersion, "cpu0"));
  json.replace(json.find(from), from.size(), to);
  p.subprograms[0].code = Code::of_text("cpu", kCpuCodeVersion, json);
  try {
    read_cpu_code(p.subprograms[0].code, p.subprograms[0], p, "cpu0");
  } catch (const InvalidModel& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CpuCode, ReadsBackWhatWasWritten) {
  const Program p = example();
  const CpuCode code = read_cpu_code(p.subprograms[0].code, p.subprograms[0], p, "cpu0");
  ASSERT_EQ(code.commands.size(), 4U);
  EXPECT_EQ(code.commands[3].steps.at(1).operand, 1);
  EXPECT_EQ(write_cpu_code(code), p.subprograms[0].code);
}

TEST(CpuCode, NamesWhatMakesNoSense) {
  for (const Forgery& f : std::vector<Forgery>{
           {R"("inputs":[0,0])", R"("inputs":[0,17])", "cpu0: commands[0]: there is no buffer 17"},
           {R"("outputs":[2])", R"("outputs":[1])", "buffer 1 is an input or a constant and is written"},
           {R"("end":"h")", R"("end":"w")", "the symbol 'w' is not declared"},
           {R"("shape":[1,3,"h",4])", R"("shape":[1,3,4,"h"])",
            "commands[2] writes f32[1,3,4,h] into a buffer of f32[1,3,h,4]"},
           {R"("axis":2)", R"("axis":4)", "axis must be in [-4,4) for rank 4; got 4"},
           {R"("axis":2)", R"("axle":2)", "cpu0: commands[1].attrs.axle is no attribute of slice."},
           {R"("operand":1)", R"("operand":-1)", "takes at most 1 input; got 2"},
           {R"("main":0)", R"("main":1)", "a step whose running value is none of its operator's inputs"},
           {R"("op":"prelu")", R"("op":"sum")", "commands[3]"},
           {R"("node")", R"("edge")", "cpu0: commands[0] has the unknown key 'edge'"},
           {R"({"commands")", R"(commands)", "cpu0: not JSON: "},
       }) {
    EXPECT_THAT(code_refusal(f.from, f.to), HasSubstr(f.message)) << f.to;
  }
  Program p = example();
  p.subprograms[0].code.version = 1;
  EXPECT_THAT([&] { read_cpu_code(p.subprograms[0].code, p.subprograms[0], p, "cpu0"); },
              testing::ThrowsMessage<InvalidModel>(HasSubstr("of version 1; this version of hetnn reads 2")));
}

TEST(Pack, AnAdditionHoldsNoByteThatIsThere) {
  Program p = example();
  const Program loaded = unpack(blob_of(pack(p)));
  const int64_t before = p.weights.size_bytes();
  EXPECT_EQ(p.weights.append(blob_of(counting(100))), 256);
  p.subprograms[1].code.bytes = counting(20);
  const Image addition = pack(p, before);
  EXPECT_LT(addition.size(), pack(p).size() - 255);
  const Program grown = unpack(blob_of(addition), "image", loaded.weights);
  EXPECT_EQ(grown.weights.at(0, 256).data(), loaded.weights.at(0, 256).data());
  EXPECT_TRUE(std::ranges::equal(grown.weights.at(256, 100), counting(100)));
  EXPECT_FALSE(grown.weights.holds(192, 128));  // across what came at different times
  EXPECT_EQ(grown.subprograms, p.subprograms);
  EXPECT_EQ(pack(grown), pack(p));
  EXPECT_THAT(refusal(addition), HasSubstr("begin at byte \"256\"; those of a whole executable begin at 0"));
}

TEST(Hash, EveryBitAndTheLengthCount) {
  const std::vector<std::byte> bytes = counting(200);
  for (size_t size = 0; size < bytes.size(); size += size < 140 ? 1 : 7) {
    const std::string whole = quick_sum(std::span(bytes).first(size));
    EXPECT_NE(whole, quick_sum(std::span(bytes).first(size + 1)));
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      Image altered(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      altered[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      ASSERT_NE(whole, quick_sum(altered)) << "bit " << bit << " of " << size << " bytes";
    }
  }
  // Zeros of another number are told apart as well, also where threads share the work.
  EXPECT_NE(quick_sum(Image(31, std::byte())), quick_sum(Image(32, std::byte())));
  Image pieces(5 << 20, std::byte());
  const std::string zeros = quick_sum(pieces);
  EXPECT_NE(zeros, quick_sum(Image(4 << 20, std::byte())));
  pieces[4 << 20] = std::byte{1};
  EXPECT_NE(zeros, quick_sum(pieces));
}

// The examples of FIPS 180-4.
TEST(Hash, Sha256IsThatOfTheStandard) {
  const auto of = [](std::string_view message) { return content_hash(std::as_bytes(std::span(message))); };
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
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
  const Image image = pack(example());
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
