// Plans of small problems, worked by hand.
#include "hetnn/plan/partition/partition.h"

#include <gtest/gtest.h>

namespace hetnn::plan {
namespace {

TEST(Partition, EmptyProblemGivesAnEmptyPlan) {
  Problem p;
  p.devices = {{"cpu", 0, false, -1}, {"npu", 5, false, -1}};
  p.set_links({});
  for (const Strategy s : {Strategy::topological, Strategy::cost, Strategy::take_all, Strategy::cpu_only}) {
    Options options;
    options.strategy = s;
    EXPECT_TRUE(partition(p, options).subgraphs.empty());
  }
}

}  // namespace
}  // namespace hetnn::plan
