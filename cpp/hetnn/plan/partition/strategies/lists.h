// Building lists of nodes. Internal to the partitioner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "hetnn/plan/partition/problem/plan.h"

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

inline size_t part_count(const std::vector<int32_t>& part_of) {
  return part_of.empty() ? 0 : static_cast<size_t>(*std::max_element(part_of.begin(), part_of.end())) + 1;
}

/// The nodes of each part, ascending.
inline NodeLists members_of(const std::vector<int32_t>& part_of) {
  return make_lists(part_count(part_of), [&](const auto& enter) {
    for (size_t v = 0; v < part_of.size(); ++v) enter(part_of[v], static_cast<int32_t>(v));
  });
}

}  // namespace hetnn::plan
