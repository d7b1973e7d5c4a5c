// Operators whose results have sizes that depend on values: what they write, and what sizes they say.
#include "hetnn/ops/sizes.h"

#include <gtest/gtest.h>

#include <limits>

#include "expect_error.h"
#include "run_meaning.h"

namespace hetnn {
namespace {

struct Found {
  std::vector<Tensor> outputs;
  Bindings sizes;
};

Found found(std::string_view op, const std::vector<std::optional<Tensor>>& inputs, ops::Attrs attrs) {
  std::vector<ops::Type> types(inputs.size());
  ops::Call call;
  call.op = &ops::OpTable::global().get(op);
  call.attrs = std::move(attrs);
  call.name = "y";
  for (size_t k = 0; k < inputs.size(); ++k) {
    types[k] = {inputs[k]->dtype(), {inputs[k]->shape().begin(), inputs[k]->shape().end()}};
    call.inputs.push_back({&types[k], nullptr});
  }
  ops::complete(call);
  Found out;
  out.outputs = ops::evaluate(call, inputs, {}, out.sizes);
  return out;
}

Tensor ints(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return Tensor::of(std::move(shape), values);
}

const ops::Attrs kCount = {{"count", Dim::symbol("u")}};

TEST(Nonzero, ListsIndicesInRowMajorOrder) {
  const Found y = found("nonzero", {ints({2, 3}, {0, 7, 0, -1, 0, 2})}, kCount);
  EXPECT_EQ(y.outputs.at(0), ints({3, 2}, {0, 1, 1, 0, 1, 2}));
  EXPECT_EQ(y.sizes, (Bindings{{"u", 3}}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(found("nonzero", {Tensor::of<float>({3}, {-0.F, nan, 0.F})}, kCount).outputs[0], ints({1, 1}, {1}));
  EXPECT_EQ(found("nonzero", {Tensor::scalar<int64_t>(5)}, kCount).outputs[0].shape(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(found("nonzero", {ints({0, 4}, {})}, kCount).outputs[0].shape(), (std::vector<int64_t>{0, 2}));
}

TEST(Compress, PicksSlicesWhereTheMaskIsTrue) {
  const Tensor x = ints({2, 3}, {1, 2, 3, 4, 5, 6}), mask = Tensor::of<bool>({3}, std::array{true, false, true});
  const Found y = found("compress", {x, mask}, {{"axis", Dim(-1)}, {"count", Dim::symbol("u")}});
  EXPECT_EQ(y.outputs.at(0), ints({2, 2}, {1, 3, 4, 6}));
  EXPECT_EQ(y.sizes, (Bindings{{"u", 2}}));
  const Tensor shorter = Tensor::of<bool>({1}, std::array{true});
  EXPECT_EQ(found("compress", {x, shorter}, kCount).outputs.at(0), ints({1, 3}, {1, 2, 3}));
  EXPECT_ERROR(found("compress", {x, mask}, kCount), InvalidModel,
               "mask must be no longer than the axis; got 3 for 2. Check the axis. (compress_c3)");
  EXPECT_ERROR(found("compress", {x, x}, kCount), InvalidModel, "mask must be bool of rank 1; got i64[2,3]");
}

TEST(Unique, SortsAndCounts) {
  const Found y = found("unique", {ints({5}, {3, 1, 3, 2, 1})}, kCount);
  EXPECT_EQ(y.outputs.at(0), ints({3}, {1, 2, 3}));
  EXPECT_EQ(y.outputs.at(1), ints({3}, {1, 3, 0}));
  EXPECT_EQ(y.outputs.at(2), ints({5}, {2, 0, 2, 1, 0}));
  EXPECT_EQ(y.outputs.at(3), ints({3}, {2, 1, 2}));
  EXPECT_EQ(y.sizes, (Bindings{{"u", 3}}));
}

TEST(Unique, KeepsTheOrderWhereItIsNotSorted) {
  ops::Attrs attrs = kCount;
  attrs["sorted"] = false;
  const Found y = found("unique", {ints({5}, {3, 1, 3, 2, 1})}, attrs);
  EXPECT_EQ(y.outputs.at(0), ints({3}, {3, 1, 2}));
  EXPECT_EQ(y.outputs.at(1), ints({3}, {0, 1, 3}));
  EXPECT_EQ(y.outputs.at(2), ints({5}, {0, 1, 0, 2, 1}));
  EXPECT_EQ(y.outputs.at(3), ints({3}, {2, 2, 1}));
}

TEST(Unique, ComparesSlicesAndNeighbours) {
  ops::Attrs attrs = kCount;
  attrs["axis"] = Dim(1);
  const Found columns = found("unique", {ints({2, 4}, {2, 1, 2, 1, 5, 6, 5, 0})}, attrs);
  EXPECT_EQ(columns.outputs.at(0), ints({2, 3}, {1, 1, 2, 0, 6, 5}));
  attrs = kCount;
  attrs["neighbours"] = true;
  const Found runs = found("unique", {ints({6}, {1, 1, 2, 2, 2, 1})}, attrs);
  EXPECT_EQ(runs.outputs.at(0), ints({3}, {1, 2, 1}));
  EXPECT_EQ(runs.outputs.at(2), ints({6}, {0, 0, 1, 1, 1, 2}));
  EXPECT_EQ(runs.outputs.at(3), ints({3}, {2, 3, 1}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(found("unique", {Tensor::of<float>({4}, {nan, 1.F, nan, 0.F})}, kCount).sizes, (Bindings{{"u", 4}}));
}

TEST(RepeatIndex, RepeatsEachIndex) {
  const Found y = found("repeat_index", {ints({4}, {2, 0, 1, 3})}, kCount);
  EXPECT_EQ(y.outputs.at(0), ints({6}, {0, 0, 2, 3, 3, 3}));
  EXPECT_ERROR(found("repeat_index", {ints({2}, {2, -1})}, kCount), InvalidModel,
               "repeats must not be negative; got -1");
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_ERROR(found("repeat_index", {ints({2}, {most, most})}, kCount), InvalidModel,
               "must add up to a 64-bit integer");
}

TEST(ReadSize, GivesEverySymbolItsInteger) {
  const ops::Attrs attrs = {{"sizes", std::vector<Dim>{Dim::symbol("a"), Dim::symbol("b")}}};
  const Found y = found("read_size", {ints({2}, {7, -3})}, attrs);
  EXPECT_EQ(y.outputs.at(0), ints({2}, {7, -3}));
  EXPECT_EQ(y.sizes, (Bindings{{"a", 7}, {"b", -3}}));
  EXPECT_ERROR(found("read_size", {ints({3}, {7, 1, 2})}, attrs), InvalidModel,
               "x must hold an integer for each of its 2 symbols, in rank 0 or 1; got i64[3]");
}

TEST(NonMaxSuppression, KeepsTheBestOfThoseThatOverlap) {
  const Tensor boxes = Tensor::of<float>(
      {1, 4, 4}, {0.F, 0.F, 1.F, 1.F, 1.F, 1.1F, 0.F, 0.1F, 0.F, 10.F, 1.F, 11.F, 0.F, 0.F, 1.F, 0.9F});
  const Tensor scores = Tensor::of<float>({1, 1, 4}, {0.75F, 0.9F, 0.5F, 0.9F});
  const Found y =
      found("non_max_suppression", {boxes, scores, Tensor::scalar<int64_t>(3), Tensor::scalar(0.5F)}, kCount);
  EXPECT_EQ(y.outputs.at(0), ints({2, 3}, {0, 0, 1, 0, 0, 2}));
  EXPECT_EQ(y.sizes, (Bindings{{"u", 2}}));
  const Found one =
      found("non_max_suppression",
            {boxes, scores, Tensor::scalar<int64_t>(9), Tensor::scalar(0.5F), Tensor::scalar(0.6F)}, kCount);
  EXPECT_EQ(one.outputs.at(0), ints({1, 3}, {0, 0, 1}));
}

TEST(Definitions, NameSymbolsOfTheirOwnOrSizesThatTheValuesMustGive) {
  EXPECT_EQ(found("nonzero", {ints({2}, {0, 1})}, {{"count", Dim(1)}}).outputs.at(0), ints({1, 1}, {1}));
  EXPECT_ERROR(found("nonzero", {ints({1}, {1})}, {{"count", Dim(3)}}), InvalidModel,
               "the values give the shape [1]; the model declares [3]");
  EXPECT_ERROR(found("nonzero", {ints({1}, {1})}, {{"count", Dim::symbol("u") + 1}}), InvalidModel,
               "attribute 'count' must name symbols to which the call gives values", "got [u + 1]");
  const Dim a = Dim::symbol("a");
  EXPECT_ERROR(found("read_size", {ints({2}, {1, 1})}, {{"sizes", std::vector<Dim>{a, a}}}), InvalidModel,
               "got [a,a]. Name each symbol once.");
}

}  // namespace
}  // namespace hetnn
