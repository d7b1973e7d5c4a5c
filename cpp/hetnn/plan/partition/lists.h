// Building lists of nodes. Internal to the partitioner.
#pragma once

#include <cstdint>
#include <numeric>

#include "hetnn/plan/partition/partition.h"

namespace hetnn::plan {

/// `count` lists in which nodes stand in the order they are entered. `for_each` is called twice, with a function
/// (list, node) that it must call for the same entries both times: lists that grew one by one would be moved about in
/// memory.
template <typename ForEach>
NodeLists make_lists(size_t count, const ForEach& for_each) {
  NodeLists lists;
  // Counted two places on, so that filling leaves every beginning where it belongs.
  lists.begin.assign(count + 2, 0);
  for_each([&](int32_t list, int32_t /*node*/) { ++lists.begin[static_cast<size_t>(list) + 2]; });
  std::partial_sum(lists.begin.begin(), lists.begin.end(), lists.begin.begin());
  lists.nodes.resize(static_cast<size_t>(lists.begin.back()));
  for_each([&](int32_t list, int32_t node) {
    lists.nodes[static_cast<size_t>(lists.begin[static_cast<size_t>(list) + 1]++)] = node;
  });
  lists.begin.pop_back();
  return lists;
}

}  // namespace hetnn::plan
