// Constants that lead outside are told; what may never be looked at, or is open, is not.
#include "hetnn/passes/check_constants.h"

#include <gtest/gtest.h>

#include "hetnn/base/error.h"
#include "hetnn/ir/text.h"

namespace hetnn::passes {
namespace {

bool is_told(const std::string& x, const std::string& place, const std::string& count = "1") {
  const ir::Graph graph =
      ir::parse(text("graph @g {stage = imported, symbols = [n: 1..9 = 2, m: 0..9 = 2]} (%x: f32[", x,
                     "]) -> (%y) {\n  %i = constant() {value = i64[", count, "] {", place, "}} : i64[", count,
                     "]\n  %y = gather(%x, %i) {axis = 1} : f32[", x.substr(0, 1), ",", count, "]\n}"));
  try {
    check_constants(graph);
  } catch (const InvalidModel& error) {
    EXPECT_NE(std::string(error.what()).find(text("index ", place, " is outside an axis")), std::string::npos);
    return true;
  }
  return false;
}

TEST(CheckConstants, AlongAnAxisOfKnownSize) {
  EXPECT_TRUE(is_told("2,3", "3"));
  EXPECT_TRUE(is_told("2,3", "-4"));
  EXPECT_TRUE(is_told("n,3", "3"));
  EXPECT_FALSE(is_told("2,3", "-3"));
  EXPECT_FALSE(is_told("n,3", "2"));
}

TEST(CheckConstants, NotWhereASizeIsOpenOrNothingIsTaken) {
  EXPECT_FALSE(is_told("2,n", "3"));
  EXPECT_FALSE(is_told("m,3", "3"));
  EXPECT_FALSE(is_told("0,3", "3"));
}

}  // namespace
}  // namespace hetnn::passes
