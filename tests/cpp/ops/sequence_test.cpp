// Tables of shapes that sequences come with: what they say is checked, however large.
#include <gtest/gtest.h>

#include "expect_error.h"
#include "run_meaning.h"

namespace hetnn::ops {
namespace {

// The values of a sequence of one tensor, which has these sizes and no values, with a tensor of two more.
Tensor inserted(std::vector<int64_t> row) {
  row.insert(row.begin(), static_cast<int64_t>(row.size()));
  row.resize(9);
  const Tensor table = Tensor::of({1, 9}, row);
  const Tensor x = Tensor::of({2}, std::vector<float>{1, 2});
  return run_meaning("sequence_insert", {Tensor::zeros(DType::f32, {0}), table, x, std::nullopt});
}

TEST(Sequence, TakesAnySizesBesideASizeOf0) {
  EXPECT_EQ(inserted({0}).shape(), std::vector<int64_t>({2}));
  EXPECT_EQ(inserted({int64_t{1} << 62, int64_t{1} << 62, 0}).shape(), std::vector<int64_t>({2}));
}

TEST(Sequence, RefusesSizesThatItsValuesDoNotHave) {
  for (const std::vector<int64_t>& row : {std::vector<int64_t>{1}, {int64_t{1} << 62, int64_t{1} << 62}, {-1}, {-1, 0}})
    EXPECT_ERROR(inserted(row), InvalidModel, "row 0 of the sequence's shapes must be a rank of at most 8");
}

}  // namespace
}  // namespace hetnn::ops
