// Plain definitions that the partitioner is compared with: brute force, and the quadratic forms of depth and merge.
#pragma once

#include <cstdint>
#include <vector>

#include "hetnn/plan/partition/strategies/partition.h"

namespace hetnn::plan::reference {

/// The least cost of any plan: all colourings, each with the cheapest valid subgraphs. Two devices, no trapped nodes.
double brute_force_cost_us(const Problem& problem);

/// Random problem of the shape that tests use: `size` nodes, few kinds of graph, all figures small integers.
struct ProblemShape {
  int32_t size = 8;
  int32_t devices = 2;
  double unsupported = 0.3;
  double non_exportable = 0.1;
  bool launch = true;
};
Problem random_problem(uint64_t seed, const ProblemShape& shape);

/// Depth strategy by the book: a fresh search for every join. Part of each node, equal parts compare as partitions.
std::vector<int32_t> depth_parts(const Problem& problem, const std::vector<int32_t>& colour_of_node);

/// Merge strategy's initial subgraphs by the book.
std::vector<int32_t> merge_parts(const Problem& problem, const std::vector<int32_t>& label_of_node);

/// Whether two numberings describe the same partition.
bool same_partition(const std::vector<int32_t>& a, const std::vector<int32_t>& b);

}  // namespace hetnn::plan::reference
