// Requests in both forms: what is read, what is refused and with which words, how they fit a network, what is answered.
#include "hetnn/serve/inference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "expect_error.h"
#include "hetnn/serve/grpc_form.h"
#include "hetnn/serve/http_form.h"

namespace hetnn::serve {
namespace {

Bytes bytes_of(std::string content) {
  auto owner = std::make_shared<const std::string>(std::move(content));
  const auto* data = reinterpret_cast<const std::byte*>(owner->data());
  return {owner, {data, owner->size()}};
}

template <typename T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

Inference http(std::string body, std::optional<int64_t> head = {}) {
  return read_http("net", "", bytes_of(std::move(body)), head);
}

template <typename T>
std::vector<T> values(const Tensor& tensor) {
  return {tensor.values<T>().begin(), tensor.values<T>().end()};
}

// A field of gRPC's messages whose value is bytes; a number and a varint.
std::string field(int number, std::string_view value) {
  HETNN_ASSERT(value.size() < 0x80);
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(value.size())} + std::string(value);
}
std::string number(int field_number, unsigned value) {
  HETNN_ASSERT(value < 0x80);
  return {static_cast<char>(field_number << 3), static_cast<char>(value)};
}
// Input `x`, FP32 of two elements.
std::string input(std::string_view more = {}) {
  return field(5, field(1, "x") + field(2, "FP32") + field(3, "\2") + std::string(more));
}

const Signature kNet = {"net", {{"x", DType::f32}}, {{"y", DType::f32}, {"z", DType::boolean, 1}}};
// Two texts, then numbers; the network gives the texts back, behind the numbers.
const Signature kTextNet = {
    "net", {{"t", std::nullopt, 1, 0}, {"x", DType::f32, 2}}, {{"x", DType::f32}, {"t", std::nullopt, 1, 2}}};

std::string joined(const Written& written) {
  std::string out;
  for (const auto& piece : written.pieces) {
    out += piece.text;
    out.append(reinterpret_cast<const char*>(piece.values.data()), piece.values.size());
  }
  return out;
}

TEST(HttpForm, ReadsValuesThatAreWrittenOut) {
  const auto written = [](const char* datatype, const char* shape, const char* data) {
    return http(text(R"({"inputs":[{"name":"x","datatype":")", datatype, R"(","shape":)", shape, R"(,"data":)", data,
                     "}]}"))
        .inputs.at(0)
        .tensor;
  };
  EXPECT_EQ(values<float>(written("FP32", "[2,2]", "[[1,2.5],[-3,1e3]]")), (std::vector<float>{1, 2.5, -3, 1000}));
  EXPECT_EQ(values<double>(written("FP64", "[2]", "[18446744073709551615,-1]")),
            (std::vector<double>{18446744073709551616.0, -1}));
  EXPECT_EQ(values<int8_t>(written("INT8", "[2]", "[-128,127]")), (std::vector<int8_t>{-128, 127}));
  EXPECT_EQ(values<uint64_t>(written("UINT64", "[1]", "[18446744073709551615]")), (std::vector{UINT64_MAX}));
  EXPECT_EQ(values<bool>(written("BOOL", "[2]", "[true,false]")), (std::vector{true, false}));
  EXPECT_EQ(values<float>(written("FP32", "[0,3]", "[]")).size(), 0);
  EXPECT_EQ(written("FP32", "[]", "[4]").rank(), 0);
  const auto odd = values<float>(written("FP32", "[3]", "[NaN,-Infinity,Infinity]"));
  EXPECT_TRUE(std::isnan(odd[0]) && odd[1] == -INFINITY && odd[2] == INFINITY);
  const Tensor half = written("FP16", "[1]", "[0.5]");
  EXPECT_EQ(half.dtype(), DType::f16);
  EXPECT_EQ(static_cast<int>(half.data()[1]), 0x38);  // 2^-1
}

TEST(HttpForm, TextsThatHoldTheWordsOfPythonStayTexts) {
  const Inference read =
      http(R"({"id":"a\"NaN","inputs":[{"name":"Infinity","datatype":"FP32","shape":[1],"data":[NaN]}]})");
  EXPECT_EQ(read.id, "a\"NaN");
  EXPECT_EQ(read.inputs.at(0).name, "Infinity");
}

TEST(HttpForm, RefusesWhatDoesNotAddUp) {
  const auto refused = [](const char* datatype, const char* shape, const char* data, const char* words) {
    EXPECT_ERROR(http(text(R"({"inputs":[{"name":"x","datatype":")", datatype, R"(","shape":)", shape, R"(,"data":)",
                           data, "}]}")),
                 InvalidModel, words);
  };
  refused("FP32", "[2]", "[1]", "input 'x': FP32[2] takes 2 values; got 1.");
  refused("FP32", "[1]", "[1,2]", "takes 1 values; got more");
  refused("INT8", "[1]", "[128]", "its data holds values beyond INT8");
  refused("UINT8", "[1]", "[-1]", "its data holds values beyond UINT8");
  refused("INT32", "[1]", "[1.5]", "must be values of INT32; got float");
  refused("BOOL", "[1]", "[1]", "must be values of BOOL; got int");
  refused("FP32", "[1]", "[true]", "must be values of FP32; got bool");
  refused("FP32", "[1]", "[\"1\"]", "must be values of FP32; got text");
  refused("FP32", "[4]", "[[1,2],[3]]", "no regular list of FP32");
  refused("FP32", "[2]", "[[1],2]", "no regular list of FP32");
  refused("FP32", "[1000000]", "[1]", "its shape takes 1000000 values; the request has fewer");
  refused("FP32", "[1099511627777]", "[1]", "more elements than any request may");
  refused("FP32", "[0,4611686018427387904,4]", "[]", "more elements than any request may");
  refused("FP32", "[-1]", "[]", "none negative; got [-1]");
  refused("FP32", "[18446744073709551615]", "[]", "must be a list of integers");
  refused("FP31", "[1]", "[]", "unknown datatype 'FP31'; there are FP32");
}

TEST(HttpForm, RawTensorsLieWhereTheyAreUnlessTheyAreNotAligned) {
  for (int shift = 0; shift < 4; ++shift) {
    const std::string head =
        R"({"inputs":[{"name":"x","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]})" +
        std::string(static_cast<size_t>(shift), ' ');
    const Bytes body = bytes_of(head + raw<float>({3, 4}));
    const Inference read = read_http("net", "1", body, static_cast<int64_t>(head.size()));
    const Tensor& tensor = read.inputs.at(0).tensor;
    EXPECT_EQ(values<float>(tensor), (std::vector<float>{3, 4}));
    const std::byte* lies = body.data.data() + head.size();
    EXPECT_EQ(tensor.data() == lies, reinterpret_cast<uintptr_t>(lies) % 4 == 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % 4, 0);
  }
}

TEST(HttpForm, SizesOfRawTensorsAreChecked) {
  const std::string head =
      R"({"inputs":[{"name":"x","datatype":"BOOL","shape":[2],"parameters":{"binary_data_size":2}}]})";
  const auto size = static_cast<int64_t>(head.size());
  EXPECT_EQ(http(head + std::string("\1\0", 2), size).inputs.at(0).tensor.bytes(), 2);
  EXPECT_ERROR(http(head + "\1", size), InvalidModel, "binary_data_size is 2; 1 bytes are left");
  EXPECT_ERROR(http(head + "\1\1\1", size), InvalidModel, "1 bytes follow the last tensor");
  EXPECT_ERROR(http(head + "\1\2", size), InvalidModel, "a byte of BOOL is neither 0 nor 1");
  EXPECT_ERROR(http(head, size + 1), InvalidModel, "Inference-Header-Content-Length must be in [0, ");
  EXPECT_ERROR(http(head, -1), InvalidModel, "Inference-Header-Content-Length must be in [0, ");
}

TEST(HttpForm, ParametersSayHowItIsRun) {
  const auto with = [](const char* parameters) { return http(text(R"({"inputs":[],"parameters":)", parameters, "}")); };
  const Inference read = with(R"({"sequence_id":7,"sequence_start":true,"priority":2,"timeout":9,"mine":[1]})");
  EXPECT_EQ(read.sequence, "7");
  EXPECT_TRUE(read.sequence_is_number && read.sequence_start && !read.sequence_end);
  EXPECT_EQ(read.priority, 2);
  EXPECT_EQ(read.timeout_us, 9);
  EXPECT_FALSE(with(R"({"sequence_id":"7"})").sequence_is_number);
  EXPECT_TRUE(with(R"({"sequence_id":0})").sequence.empty());
  EXPECT_ERROR(with(R"({"sequence_id":1.5})"), InvalidModel, "sequence_id must be a number or a text; got 1.5");
  EXPECT_ERROR(with(R"({"sequence_end":true})"), InvalidModel, "need a sequence_id that is not 0 or empty");
  EXPECT_ERROR(with(R"({"sequence_id":1,"sequence_end":1})"), InvalidModel,
               "sequence_end must be true or false; got 1");
  EXPECT_ERROR(with(R"({"timeout":-1})"), InvalidModel, "timeout must be an integer that is not negative; got -1");
  EXPECT_ERROR(with(R"({"priority":{}})"), InvalidModel,
               "priority must be an integer that is not negative; got object");
}

TEST(HttpForm, PlacesInSharedMemoryAreRead) {
  const auto with = [](const char* parameters) {
    return http(text(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[2],"parameters":)", parameters, "}]}"));
  };
  const Inference read = with(R"({"shared_memory_region":"r","shared_memory_offset":4,"shared_memory_byte_size":8})");
  ASSERT_TRUE(read.inputs.at(0).shared);
  EXPECT_EQ(read.inputs[0].shared->region, "r");
  EXPECT_EQ(read.inputs[0].shared->offset, 4);
  EXPECT_EQ(read.inputs[0].shared->bytes, 8);
  EXPECT_ERROR(with(R"({"shared_memory_offset":4})"), InvalidModel, "shared_memory_region is missing");
  EXPECT_ERROR(with(R"({"shared_memory_region":"r"})"), InvalidModel, "shared_memory_byte_size must be an integer");
  EXPECT_ERROR(with(R"({"shared_memory_region":1,"shared_memory_byte_size":8})"), InvalidModel,
               "must be a text; got 1");
  EXPECT_ERROR(with("{}"), InvalidModel, "must have one of data, binary_data_size and shared_memory_region");
}

TEST(GrpcForm, ReadsRawAndTypedContents) {
  const std::string begin = field(1, "net") + field(2, "3") + field(3, "id");
  const Inference read = read_grpc(bytes_of(begin + input() + field(7, raw<float>({1, 2}))));
  EXPECT_EQ(read.model + read.version + read.id, "net3id");
  EXPECT_EQ(values<float>(read.inputs.at(0).tensor), (std::vector<float>{1, 2}));
  const std::string packed = field(5, field(6, raw<float>({1, 2})));
  EXPECT_EQ(values<float>(read_grpc(bytes_of(input(packed))).inputs.at(0).tensor), (std::vector<float>{1, 2}));
  const std::string alone = '\x35' + raw<float>({1}) + '\x35' + raw<float>({2});
  EXPECT_EQ(values<float>(read_grpc(bytes_of(input(field(5, alone)))).inputs.at(0).tensor), (std::vector<float>{1, 2}));
  const std::string small = field(1, "x") + field(2, "INT8") + number(3, 1) + field(5, number(2, 5));
  EXPECT_EQ(values<int8_t>(read_grpc(bytes_of(field(5, small))).inputs.at(0).tensor), (std::vector<int8_t>{5}));
}

TEST(GrpcForm, ParametersAreAMapWhoseLastEntryCounts) {
  const auto entry = [](std::string_view key, const std::string& value) {
    return field(4, field(1, key) + field(2, value));
  };
  const Inference read = read_grpc(bytes_of(entry("sequence_id", number(2, 5)) + entry("sequence_id", field(3, "s")) +
                                            entry("sequence_start", number(1, 1)) + entry("timeout", number(5, 9)) +
                                            entry("mine", '\x21' + raw<double>({1.5}))));
  EXPECT_EQ(read.sequence, "s");
  EXPECT_TRUE(read.sequence_start && !read.sequence_is_number);
  EXPECT_EQ(read.timeout_us, 9);
}

TEST(GrpcForm, RefusesWhatIsNoMessageOrDoesNotAddUp) {
  const auto refused = [](const std::string& message, const char* words) {
    EXPECT_ERROR(read_grpc(bytes_of(message)), InvalidModel, words);
  };
  refused("\x0a\x05net", "its fields do not fill it");
  refused("\x0a", "its fields do not fill it");
  refused(std::string("\x0a") + std::string(11, '\xff'), "a number has more than ten bytes");
  refused(std::string(1, '\0') + "a", "a field has no number");
  refused("\x0b", "laid out in a way that the protocol does not use");
  refused(field(1, "\xff"), "a text is not UTF-8");
  refused(field(1, "\xed\xa0\x80"), "a text is not UTF-8");
  refused(field(1, "\xc0\xaf"), "a text is not UTF-8");
  refused(input() + field(7, "1234"), "FP32[2] takes 8 bytes; got 4");
  refused(input() + input() + field(7, raw<float>({1, 2})), "raw_input_contents has no bytes for input 'x'");
  refused(input() + field(7, raw<float>({1, 2})) + field(7, ""), "more items than there are inputs that want one");
  refused(input(field(5, "")) + field(7, raw<float>({1, 2})), "not as both");
  refused(input(field(5, number(2, 1) + number(2, 1))), "FP32 comes as fp32_contents; got int_contents");
  refused(input(), "its contents have fewer");
  refused(field(5, field(1, "x") + field(2, "FP32") + field(3, std::string(9, '\xff') + '\1')), "none negative");
  EXPECT_EQ(read_grpc(bytes_of(field(1, "\xf0\x9f\x99\x82") + field(60 - 50, "later fields are skipped"))).model,
            "\xf0\x9f\x99\x82");
}

TEST(Bind, PutsInputsInOrderAndFindsWhatIsWanted) {
  Inference asked = http(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1,2]}]})");
  const Bound all = bind(asked, kNet);
  EXPECT_EQ(all.rows, 2);
  EXPECT_EQ(all.inputs.size(), 1);
  ASSERT_EQ(all.outputs.size(), 2);
  EXPECT_EQ(all.outputs[1].wanted.name, "z");
  asked.outputs = {{"z", true, {}}};
  EXPECT_EQ(bind(asked, kNet).outputs.at(0).port, 1);
  asked.outputs.push_back({"z", true, {}});
  EXPECT_ERROR(bind(asked, kNet), InvalidModel, "the output 'z' is asked for twice");
  asked.outputs = {{"w", true, {}}};
  EXPECT_ERROR(bind(asked, kNet), InvalidModel, "'net' has no output 'w'; it gives y, z.");
  asked.inputs.push_back(asked.inputs[0]);
  EXPECT_ERROR(bind(asked, kNet), InvalidModel, "the input 'x' is there twice");
  asked.inputs[1].name = "w";
  EXPECT_ERROR(bind(asked, kNet), InvalidModel, "'net' has no input 'w'; it takes x.");
  asked.inputs = {given("x", "BYTES", {1})};
  EXPECT_ERROR(bind(asked, kNet), InvalidModel, "input 'x' must be FP32; got BYTES.");
  asked.inputs.clear();
  EXPECT_ERROR(bind(asked, kNet), InvalidModel, "the input 'x' of 'net' is missing.");
}

std::string text_raw(std::string_view words) {
  return raw<uint32_t>({static_cast<uint32_t>(words.size())}) + std::string(words);
}

TEST(Texts, AreReadFromEveryForm) {
  const std::string head = R"({"inputs":[{"name":"t","datatype":"BYTES","shape":[2,2],)";
  const std::string words = text_raw("a") + text_raw("") + text_raw("b\n\xc3\xbc") + text_raw("c");
  const std::string with_raw = head + R"("parameters":{"binary_data_size":)" + std::to_string(words.size()) + "}}]}";
  const std::string described = field(1, "t") + field(2, "BYTES") + field(3, "\2\2");
  const Inference forms[] = {
      http(head + R"("data":[["a",""],["b\n\u00fc","c"]]}]})"), http(head + R"("data":["a","","b\nü","c"]}]})"),
      http(with_raw + words, static_cast<int64_t>(with_raw.size())),
      read_grpc(bytes_of(field(5, described) + field(7, words))),
      read_grpc(bytes_of(
          field(5, described + field(5, field(8, "a") + field(8, "") + field(8, "b\n\xc3\xbc") + field(8, "c")))))};
  constexpr int64_t kSpan = int64_t{1} << 32;
  for (const Inference& each : forms) {
    const Given& given = each.inputs.at(0);
    const auto bytes = values<uint8_t>(given.tensor);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()),
              "ab\n\xc3\xbc"
              "c");
    EXPECT_EQ(given.spans.shape(), (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(values<int64_t>(given.spans), (std::vector<int64_t>{1, 0, kSpan + 4, 5 * kSpan + 1}));
  }
}

TEST(Texts, RefusesThoseThatAreMalformed) {
  const auto raw_texts = [](const std::string& words, const char* shape) {
    const std::string head = text(R"({"inputs":[{"name":"t","datatype":"BYTES","shape":)", shape,
                                  R"(,"parameters":{"binary_data_size":)", words.size(), "}}]}");
    return http(head + words, static_cast<int64_t>(head.size()));
  };
  EXPECT_EQ(raw_texts("", "[0]").inputs.at(0).spans.elems(), 0);
  EXPECT_ERROR(raw_texts(raw<uint32_t>({7}) + "short", "[1]"), InvalidModel,
               "input 't': the length of text 0 of BYTES is 7; 5 bytes are left.");
  EXPECT_ERROR(raw_texts(text_raw("abcd") + "xyz", "[2]"), InvalidModel, "before text 1 3 are left");
  EXPECT_ERROR(raw_texts(text_raw("abcd"), "[2]"), InvalidModel, "input 't': BYTES[2] takes 2 values; got 1.");
  EXPECT_ERROR(raw_texts(text_raw("a") + text_raw("b"), "[1]"), InvalidModel, "takes 1 values; got more.");
  EXPECT_ERROR(raw_texts(text_raw("a"), "[1000000]"), InvalidModel, "takes 1000000 values; got no more than 1 in 5");
  const auto written = [](const char* data) {
    return http(text(R"({"inputs":[{"name":"t","datatype":"BYTES","shape":[2],"data":)", data, "}]}"));
  };
  EXPECT_ERROR(written(R"(["a",1])"), InvalidModel, "input 't': its data must be values of BYTES; got int.");
  EXPECT_ERROR(written(R"(["a"])"), InvalidModel, "BYTES[2] takes 2 values; got 1.");
  EXPECT_ERROR(written(R"([["a"],"b"])"), InvalidModel, "its data is no regular list of BYTES");
  EXPECT_ERROR(written("[\"a\",\"\xff\"]"), InvalidModel, "the request");
  const std::string described = field(1, "t") + field(2, "BYTES") + field(3, "\1");
  EXPECT_ERROR(read_grpc(bytes_of(field(5, described + field(5, number(2, 1))))), InvalidModel,
               "BYTES comes as bytes_contents; got int_contents");
  EXPECT_ERROR(read_grpc(bytes_of(input(field(5, field(8, "ab"))))), InvalidModel,
               "FP32 comes as fp32_contents; got bytes_contents");
}

TEST(Texts, AreTwoPortsOfTheNetworkAndOneTensorOfTheAnswer) {
  Inference asked = http(
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]},{"name":"t","datatype":"BYTES","shape":[2],)"
      R"("data":["né",""]}]})");
  const Bound bound = bind(asked, kTextNet);
  ASSERT_EQ(bound.inputs.size(), 3);
  EXPECT_EQ(values<int64_t>(bound.inputs[0]), (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(bound.inputs[1].bytes(), 3);
  const std::vector<Tensor> outputs = {bound.inputs[2], bound.inputs[1], bound.inputs[0]};
  asked.outputs = {{"t", false, {}}};
  EXPECT_EQ(joined(write_http(asked, "1", bind(asked, kTextNet), outputs)),
            R"({"model_name":"net","model_version":"1","outputs":[{"name":"t","datatype":"BYTES","shape":[2],)"
            R"("data":["né",""]}]})");
  asked.outputs = {{"x", true, {}}, {"t", true, {}}};
  const Written written = write_http(asked, "1", bind(asked, kTextNet), outputs);
  EXPECT_EQ(joined(written).substr(static_cast<size_t>(written.head_bytes.value())),
            raw<float>({1}) + text_raw("né") + text_raw(""));
  EXPECT_EQ(joined(write_grpc(asked, "1", bind(asked, kTextNet), outputs)),
            field(1, "net") + field(2, "1") + field(5, field(1, "x") + field(2, "FP32") + field(3, "\1")) +
                field(5, field(1, "t") + field(2, "BYTES") + field(3, "\2")) + field(6, raw<float>({1})) +
                field(6, text_raw("né") + text_raw("")));
  const Tensor odd = Tensor::of<uint8_t>({1}, std::vector<uint8_t>{0xff});
  const std::vector<Tensor> no_utf8 = {outputs[0], odd, Tensor::of<int64_t>({1}, std::vector<int64_t>{1})};
  asked.outputs = {{"t", false, {}}};
  EXPECT_ERROR(write_http(asked, "1", bind(asked, kTextNet), no_utf8), Unsupported,
               "output 't': its text 0 is no UTF-8 and has no form in JSON");
  for (const int64_t span : {int64_t{2}, (int64_t{1} << 32) + 1, int64_t{-1}}) {
    const std::vector<Tensor> outside = {outputs[0], odd, Tensor::of<int64_t>({1}, std::vector<int64_t>{span})};
    EXPECT_ERROR(write_http(asked, "1", bind(asked, kTextNet), outside), InvalidModel, "of 1 bytes.");
  }
}

TEST(Texts, ASignatureSaysWhichPortsTheyAre) {
  program::Program program;
  program.buffers = {{.name = "s", .dtype = DType::i64, .shape = {}},
                     {.name = "b", .dtype = DType::u8, .shape = {}},
                     {.name = "x", .shape = {}}};
  program.inputs = {{"x", 2}, {"t.bytes", 1}, {"t.spans", 0}};
  program.outputs = {{"t.spans", 0}, {"t.bytes", 1}};
  program.signature_json =
      R"({"args":[{"optional":[0,{"text":[1,2]}]}],"names":["t"],"kwargs":[],"outputs":{"dict":[["k",{"text":[1,0]}]]}})";
  const Signature made = signature_of("net", program);
  ASSERT_EQ(made.inputs.size(), 2);
  EXPECT_EQ(made.inputs[0].name, "x");
  EXPECT_EQ(made.inputs[1].name, "t");
  EXPECT_FALSE(made.inputs[1].dtype);
  EXPECT_EQ(std::pair(made.inputs[1].port, made.inputs[1].spans), std::pair(size_t{1}, std::optional<size_t>(2)));
  ASSERT_EQ(made.outputs.size(), 1);
  EXPECT_EQ(std::pair(made.outputs[0].port, made.outputs[0].spans), std::pair(size_t{1}, std::optional<size_t>(0)));
  program.signature_json.clear();
  EXPECT_EQ(signature_of("net", program).inputs.size(), 3);
}

TEST(Write, AnswersInTheFormOfTheRequest) {
  const std::vector<Tensor> outputs = {Tensor::of<float>({1, 2}, std::vector<float>{0.1F, NAN}),
                                       Tensor::zeros(DType::boolean, {1})};
  Inference asked = http(R"({"id":"i\"d","inputs":[{"name":"x","datatype":"FP32","shape":[2],"data":[1,2]}]})");
  asked.outputs = {{"y", false, {}}};
  Written written = write_http(asked, "4", bind(asked, kNet), outputs);
  EXPECT_FALSE(written.head_bytes);
  EXPECT_EQ(joined(written),
            R"({"model_name":"net","model_version":"4","id":"i\"d","outputs":[{"name":"y","datatype":"FP32",)"
            R"("shape":[1,2],"data":[0.1,NaN]}]})");
  asked.outputs = {{"y", true, {}}};
  written = write_http(asked, "4", bind(asked, kNet), outputs);
  ASSERT_TRUE(written.head_bytes);
  EXPECT_EQ(joined(written).substr(static_cast<size_t>(*written.head_bytes)), raw<float>({0.1F, NAN}));
  EXPECT_EQ(joined(write_grpc(asked, "4", bind(asked, kNet), outputs)),
            field(1, "net") + field(2, "4") + field(3, "i\"d") +
                field(5, field(1, "y") + field(2, "FP32") + field(3, "\1\2")) + field(6, raw<float>({0.1F, NAN})));
  asked.outputs = {{"y", true, SharedSpan{"r", 1, 8}}};
  written = write_http(asked, "4", bind(asked, kNet), outputs);
  EXPECT_FALSE(written.head_bytes);
  EXPECT_NE(joined(written).find(
                R"("parameters":{"shared_memory_region":"r","shared_memory_offset":1,"shared_memory_byte_size":8})"),
            std::string::npos);
}

}  // namespace
}  // namespace hetnn::serve
