// Every variant serves an operator: one that no call reaches would be kept, built and tested for nobody.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "expect_error.h"
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

TEST(Registry, WhatAVariantServesItIsMadeFor) {
  const TensorView x = TensorView::plain(DType::f32, std::vector<int64_t>{2, 3});
  const Params params;
  const KernelCall call{{&x, 1}, {&x, 1}, params};
  Variant careless = *find_kernel("copy");
  EXPECT_NE(make_kernel(careless, call), nullptr);
  careless.create = [](const KernelCall&) -> std::unique_ptr<Kernel> { throw Unsupported("no such copy"); };
  EXPECT_ERROR(make_kernel(careless, call), InternalError, "the kernel copy serves a call", "no such copy");
}

TEST(Registry, RefusesWithAReason) {
  const TensorView x = TensorView::plain(DType::f32, std::vector<int64_t>{2, 3});
  const TensorView half = TensorView::plain(DType::f16, std::vector<int64_t>{2, 3});
  const Params params;
  const std::vector<Step> steps = {{"relu", -1, {}}};
  const Variant& copy = *find_kernel("copy");
  EXPECT_EQ(refusal_of(copy, {{&x, 1}, {&x, 1}, params}), std::nullopt);
  EXPECT_EQ(refusal_of(copy, {{&x, 1}, {&x, 1}, params, steps}), "copy takes no steps.");
  EXPECT_EQ(refusal_of(copy, {{&x, 1}, {&half, 1}, params}), "a copy keeps the dtype; got f32 to f16.");
  EXPECT_ERROR(make_kernel(copy, {{&x, 1}, {&half, 1}, params}), Unsupported, "a copy keeps the dtype");
}

}  // namespace
}  // namespace hetnn::kernels
