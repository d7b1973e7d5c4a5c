// Fusion: nodes that can be computed in one launch are one, so that results between them are never written.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "hetnn/ir/graph.h"
#include "hetnn/report/report.h"

namespace hetnn::passes {

struct FuseOptions {
  /// Off: every node is a launch of its own.
  bool enabled = true;
  /// Whether `follower` can be computed in the launch of the chain `launch`, whose last node's result it reads. Given
  /// by the backend.
  std::function<bool(std::span<const ir::Node* const> launch, const ir::Node& follower)> can_follow;
  /// Whether the device runs n-ary layers and scaled convolutions, which are then made first (passes/combine.h): of
  /// chains and trees of sums, products and extremes, and of gates and norms before convolutions. It then also lets
  /// values lie in one another's memory, and movements become fewer (passes/moving.h).
  bool combines = false;
  /// Of what is between two convolutions, so many bytes stay near until they are read: beyond, the two are computed in
  /// bands of rows, if the device combines.
  double kept_bytes = std::numeric_limits<double>::infinity();
  /// Keep the order of all roundings.
  bool deterministic = false;
};

/// Gives every node but constants a launch. A node joins, among the producers of its inputs that it can follow, the one
/// with the greatest depth (the last to be ready: the other operands exist by then; ties: the one earlier in the
/// graph). A value that anyone else reads, or that the graph returns, must be written, so its producer is not joined;
/// of a producer of several outputs only the first is followed, and where others are read too (statistics of a norm)
/// only by what else reads values from before the launch. Launches are numbered in the order of their first nodes, a
/// launch's nodes form a chain, and no launch waits for another that waits for it. The stage becomes fused. Returns a
/// row for each launch and each n-ary layer of more than one node: `into` is its first node. Depth: 0 for a node
/// without inputs that vary, else 1 + the greatest among its producers.
std::vector<report::FusionRow> fuse(ir::Graph& graph, const FuseOptions& options);

/// The nodes of each launch of a fused graph, launches in the order of their last nodes, when all operands of their
/// steps are written; one whose first node has several outputs that are read in the order of that node.
std::vector<std::vector<const ir::Node*>> chains_of(const ir::Graph& graph);

/// Bytes of the distinct inputs of a chain of nodes that are not made inside it, constants included, and of the outputs
/// that are left of it: the last node's, and all but the first of the first node's.
double bytes_of(const std::vector<const ir::Node*>& nodes, const Bindings& hints);

/// The depth of every node, by that definition; constants are left out.
std::vector<std::pair<const ir::Node*, int>> depths(const ir::Graph& graph);

}  // namespace hetnn::passes
