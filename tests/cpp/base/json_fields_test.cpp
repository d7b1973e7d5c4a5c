// Reading JSON by tables of fields: what is wrong is named with its place, in one wording; limits hold while reading.
#include "hetnn/base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hetnn::json {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

enum class Colour : uint8_t { red, green };
struct Leaf {
  int32_t count = 1;
  DType dtype = DType::f32;
};
struct Tree {
  std::string name;
  bool tall = false;
  double height = 2.5;
  Colour colour = Colour::red;
  std::vector<Leaf> leaves;
  Leaf fruit;
  std::map<std::string, double> weights;
  std::vector<Dim> shape;
  std::string owner = "nobody";
};

const Fields<Leaf>& leaf_fields() {
  static const Fields<Leaf> fields = {{"count", &Leaf::count, integer<int32_t>(1, 100), "how many"},
                                      {"dtype", &Leaf::dtype, dtype(), "the type", Presence::optional}};
  return fields;
}

const Fields<Tree>& tree_fields() {
  static const Fields<Tree> fields = {
      {"name", &Tree::name, word(), "what the tree is called"},
      {"tall", &Tree::tall, truth(), "whether it is tall", Presence::optional},
      {"height", &Tree::height, number({.least = 0, .above = true}), "its height in m", Presence::optional},
      {"colour", &Tree::colour, one_of<Colour>({{"red", Colour::red}, {"green", Colour::green}}), "its colour",
       Presence::optional},
      {"leaves", &Tree::leaves, list_of(object(leaf_fields), 1, "leaves"), "its leaves", Presence::optional},
      {"fruit", &Tree::fruit, object(leaf_fields), "its fruit", Presence::optional},
      {"weights", &Tree::weights, unless_empty(map_of<std::map<std::string, double>>(number({.least = 0, .most = 9}))),
       "weights by name", Presence::optional},
      {"shape", &Tree::shape, list_of(dim()), "its shape", Presence::optional},
      {"owner", &Tree::owner, any_text(), "whose it is", Presence::nullable}};
  return fields;
}

constexpr JsonFormat kFormat = {"tree", "the tree", 5, 40, 20};

Tree read(std::string_view text) {
  const Json document = parse(text, kFormat, "t.json");
  return tree_fields().value({document, kFormat, "t.json"});
}

auto refused(const std::string& message) { return ThrowsMessage<InvalidModel>(HasSubstr(message)); }

TEST(JsonFields, ReadsWhatIsThereAndKeepsTheOtherDefaults) {
  const Tree tree = read(R"({"leaves": [{"count": 2}, {"dtype": "i8", "count": 3}], "name": "oak", "colour": "green",
                             "shape": [2, "2*n"], "weights": {"a": 1}, "owner": null})");
  EXPECT_EQ(tree.name, "oak");
  EXPECT_EQ(tree.height, 2.5);
  EXPECT_EQ(tree.colour, Colour::green);
  ASSERT_EQ(tree.leaves.size(), 2U);
  EXPECT_EQ(tree.leaves[1].count, 3);
  EXPECT_EQ(tree.leaves[1].dtype, DType::i8);
  EXPECT_EQ(tree.shape[1].to_string(), Dim::parse("2*n").to_string());
  EXPECT_EQ(tree.weights.at("a"), 1);
  EXPECT_EQ(tree.owner, "nobody");
}

TEST(JsonFields, WritesWhatItReads) {
  const char* text = R"({"name":"oak","tall":true,"height":1.5,"colour":"green","leaves":[{"count":2,"dtype":"i8"}],)"
                     R"("fruit":{"count":1,"dtype":"f32"},"weights":{"a":1.0},"shape":[2],"owner":"me"})";
  EXPECT_EQ(tree_fields().write(read(text)).dump(), text);
}

TEST(JsonFields, NamesThePlaceAndWhatIsExpected) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "t.json: the tree must be an object; found []."},
      {R"({"tall": true})", "t.json: the tree lacks 'name', what the tree is called."},
      {R"({"name": "a", "hight": 3})",
       "t.json: the tree has the unknown key 'hight'; did you mean 'height'? Known are name, tall, height, "},
      {R"({"name": "a", "zzzzzzzz": 3})", "has the unknown key 'zzzzzzzz'; known are name, tall"},
      {R"({"name": ""})", "t.json: name must be a text that is not empty; found \"\"."},
      {R"({"name": "a", "tall": 1})", "t.json: tall must be true or false; found 1."},
      {R"({"name": "a", "height": "3"})", "t.json: height must be a finite number above 0; found \"3\"."},
      {R"({"name": "a", "height": 0})", "height must be a finite number above 0; found 0."},
      {R"({"name": "a", "weights": {"b": 10}})", "t.json: weights.b must be a number in [0, 9]; found 10."},
      {R"({"name": "a", "colour": "blue"})", "t.json: colour must be one of red, green; found \"blue\"."},
      {R"({"name": "a", "leaves": []})", "t.json: leaves must be a list of leaves that is not empty; found []."},
      {R"({"name": "a", "leaves": [{"count": 1}, {"count": 101}]})",
       "t.json: leaves[1].count must be an integer in [1, 100]; found 101."},
      {R"({"name": "a", "leaves": [{"count": 1.5}]})", "leaves[0].count must be an integer in [1, 100]; found 1.5."},
      {R"({"name": "a", "leaves": [{"count": 18446744073709551615}]})", "must be an integer in [1, 100]; found 184"},
      {R"({"name": "a", "leaves": [3]})", "t.json: leaves[0] must be an object; found 3."},
      {R"({"name": "a", "leaves": [{"count": 1, "dtype": "f31"}]})", "leaves[0].dtype must be one of f32, "},
      {R"({"name": "a", "fruit": {}})", "t.json: fruit lacks 'count', how many."},
      {R"({"name": "a", "shape": ["2*"]})", "t.json: shape[0] must be a size"},
      {R"({"name": "a", "tall": null})", "t.json: tall must be true or false; found null."}};
  for (const auto& [text, message] : cases) EXPECT_THAT([t = text] { read(t); }, refused(message)) << text;
}

TEST(JsonFields, ANameOfItsOwnStandsForThePath) {
  const Json document = parse(R"({"leaves": [{"count": 0}]})", kFormat, "t.json");
  const At at(document, kFormat, "t.json");
  const At leaves = at.child("leaves", document["leaves"]);
  const At leaf = leaves.item(0);
  const At called = leaf.called("leaf", "left one");
  EXPECT_THAT([&] { leaf_fields().value(called); },
              refused("t.json: leaf 'left one': count must be an integer in [1, 100]; found 0."));
}

TEST(JsonFields, TheSchemaTellsKindRangeAndDefault) {
  const Json schema = tree_fields().schema();
  EXPECT_EQ(schema["required"], Json({"name"}));
  EXPECT_EQ(schema["additionalProperties"], Json(false));
  EXPECT_EQ(
      schema["properties"]["height"],
      Json({{"type", "number"}, {"exclusiveMinimum", 0.0}, {"default", 2.5}, {"description", "its height in m"}}));
  EXPECT_EQ(schema["properties"]["colour"]["default"], Json("red"));
  EXPECT_EQ(schema["properties"]["leaves"]["items"]["properties"]["count"]["maximum"], Json(100));
}

TEST(ReadJson, WhatIsNoJsonSaysWhere) {
  EXPECT_THAT([] { read("{\"name\": "); }, refused("t.json: not JSON: parse error at line 1, column 10"));
  EXPECT_THAT([] { read("{} x"); }, refused("Expected the tree."));
  EXPECT_THAT([] { read(R"({"name": "a", "height": 1e999})"); }, refused("t.json: not JSON: number overflow"));
  EXPECT_THAT([] { read(R"({"name": "a", "height": NaN})"); }, refused("t.json: not JSON: "));
  EXPECT_THAT([] { read("{\"name\": \"\xff\"}"); }, refused("ill-formed UTF-8"));
}

TEST(ReadJson, AKeyThatStandsTwiceIsRefused) {
  EXPECT_THAT([] { read(R"({"name": "a", "name": "b"})"); }, refused("t.json: the tree has the key 'name' twice."));
  EXPECT_THAT([] { read(R"({"leaves": [{}, {"count": 1, "count": 1}]})"); },
              refused("t.json: leaves[1] has the key 'count' twice."));
  std::string many = R"({"name": "a", "weights": {)";
  for (int k = 0; k < 25; ++k) many += text(k ? ", " : "", "\"w", k, "\": 1");
  EXPECT_EQ(read(many + "}}").weights.size(), 25U);
  EXPECT_THAT([&] { read(many + ", \"w20\": 2}}"); }, refused("t.json: weights has the key 'w20' twice."));
}

TEST(ReadJson, LimitsHoldWhileReading) {
  EXPECT_THAT([] { read(R"({"a": [[[[[1]]]]]})"); },
              refused("t.json: a[0][0][0] is nested too deep; at most 5 levels are expected."));
  EXPECT_THAT([] { read(std::string(100'000, '[')); }, refused("is nested too deep; at most 5 levels"));
  std::string deep;
  for (int k = 0; k < 100'000; ++k) deep += "{\"a\":";
  EXPECT_THAT([&] { read(deep); }, refused("is nested too deep; at most 5 levels"));
  std::string many = R"({"shape": [0)";
  for (int k = 0; k < 40; ++k) many += ", 1";
  EXPECT_THAT([&] { read(many + "]}"); }, refused("t.json: shape holds more than 40 values."));
  EXPECT_THAT([] { read(R"({"name": "abcdefghijklmnopqrstu"})"); },
              refused("holds a text of 21 bytes; at most 20 are expected."));
  EXPECT_THAT([] { read(R"({"abcdefghijklmnopqrstu": 1})"); }, refused("holds a text of 21 bytes"));
}

TEST(ReadJson, LongTextsAreShortenedBetweenCharacters) {
  const JsonFormat format = {"tree", "the tree", 5, 40, 1000};
  std::string name;
  for (int k = 0; k < 100; ++k) name += "\u00e9";
  const Json document = parse("{\"tall\": \"" + name + "\", \"name\": \"a\"}", format, "t.json");
  EXPECT_THAT(
      [&] {
        tree_fields().value({document, format, "t.json"});
      },
      refused("found \"" + name.substr(0, 56) + "...."));
}

TEST(ReadJson, ATakerGetsTheItemsOneByOne) {
  std::vector<std::string> seen;
  const Json rest = parse(R"({"a": [1, {"b": [2]}, 3], "c": {"d": 4}})", kFormat, "t.json",
                          [&](std::string_view key, bool item, const Json& value) {
                            seen.push_back(text(key, item ? " item " : " ", value.dump()));
                            return item;
                          });
  EXPECT_THAT(seen, testing::ElementsAre("a item 1", "a item {\"b\":[2]}", "a item 3", "a []", "c {\"d\":4}"));
  EXPECT_EQ(rest.dump(), R"({"a":[],"c":{"d":4}})");
}

}  // namespace
}  // namespace hetnn::json
