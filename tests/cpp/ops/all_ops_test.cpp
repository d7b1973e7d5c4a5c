// The table of operators: every record is whole.
#include <gtest/gtest.h>

#include "hetnn/ops/op_def.h"

namespace hetnn::ops {
namespace {

TEST(AllOps, EveryOperatorButTheConstantHasASampleAndAMeaning) {
  for (const OpDef* op : OpTable::global().all()) {
    EXPECT_NE(op->meaning, nullptr) << op->name;
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_EQ(op->samples.empty(), op->has(Trait::constant)) << op->name;
  }
}

}  // namespace
}  // namespace hetnn::ops
