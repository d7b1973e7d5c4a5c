// Every variant serves an operator: one that no call reaches would be kept, built and tested for nobody.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hetnn/kernels/kernel.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::kernels {
namespace {

TEST(Registry, EveryVariantComputesSomeOperator) {
  for (const Variant& variant : all_kernels()) {
    EXPECT_TRUE(
        std::ranges::any_of(ops::OpTable::global().all(), [&](const ops::OpDef* op) { return computes(variant, *op); }))
        << "no operator is computed by the variant " << variant.name;
  }
}

TEST(Registry, AnOperatorHasOneVariantOfAName) {
  std::set<std::pair<std::string_view, std::string_view>> rows;
  for (const Variant& variant : all_kernels())
    EXPECT_TRUE(rows.emplace(variant.name, variant.op).second) << variant.name << " of " << variant.op;
}

}  // namespace
}  // namespace hetnn::kernels
