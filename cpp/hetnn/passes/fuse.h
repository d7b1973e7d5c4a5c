// Fusion: nodes that can be computed in one launch get one group, so that results between them are never written.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

struct FuseOptions {
  /// Off: every node is a group of its own.
  bool enabled = true;
  /// Whether `follower`, which reads `value`, can be computed in the launch that `anchor` starts and that has `value`
  /// as its result so far. Given by the backend.
  std::function<bool(const ir::Node& anchor, const ir::Value& value, const ir::Node& follower)> can_follow;
};

/// One group of more than one node.
struct Fusion {
  std::string into;                // the anchor: the group's first node
  std::vector<std::string> nodes;  // all of them, in order
  double bytes_before = 0;         // read and written by the nodes one by one, constants included
  double bytes_after = 0;          // read and written by the group
};

/// Gives every node but constants a group. A node joins, among the producers of its inputs that it can follow, the one
/// with the greatest depth (the last to be ready: the other operands exist by then; ties: the one earlier in the
/// graph). A value that anyone else reads, or that the graph returns, must be written, so its producer is not joined;
/// nor is a producer of several outputs. Groups are numbered in the order of their anchors, a group's nodes form a
/// chain, and no group waits for another that waits for it. The stage becomes fused.
/// Depth: 0 for a node without inputs that vary, else 1 + the greatest among its producers.
std::vector<Fusion> fuse(ir::Graph& graph, const FuseOptions& options);

/// The depth of every node, by that definition; constants are left out.
std::vector<std::pair<const ir::Node*, int>> depths(const ir::Graph& graph);

}  // namespace hetnn::passes
