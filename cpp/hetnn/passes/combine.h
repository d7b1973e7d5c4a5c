// Combining: several nodes as one layer of a device. Chains and trees of sums, products and extremes become an n-ary
// layer, which reads every operand once and writes its result once; gates and norms join the convolution behind; two
// convolutions become one that runs in bands; attention that is written out becomes one layer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hetnn/passes/fuse.h"
#include "hetnn/passes/rule.h"

namespace hetnn::passes {

/// Nodes of which a layer was made.
struct CombinedLayer {
  std::vector<std::string> nodes;  // in the graph's order
  double bytes_before = 0;         // read and written by them one by one
};

/// Applies the rules of `combining`, `scaling` and `banding` to every sum, product, extreme and convolution, the last
/// in the graph first, so that a layer takes in all it can; those of `banding` where what is between the convolutions
/// is larger than FuseOptions::kept_bytes. Where an operand comes from a node that the layer can follow in the same
/// launch (FuseOptions::can_follow), fuse() makes it a step there. Where only the nodes that the layer would be made of
/// can, it is refused: they are steps of that launch, and nothing is written in between. So is a sum or difference of
/// two values that would follow none. FuseOptions::deterministic picks the rules that keep every rounding. Returns what
/// each new node was made of.
std::map<const ir::Node*, CombinedLayer> combine(ir::Graph& graph, const FuseOptions& options);

/// Applies the rules of `combining_narrow`, the last node first: before values of narrow types are computed in f32
/// (passes/compute_in_f32.h). The number of layers made.
size_t combine_narrow(ir::Graph& graph);

/// The rules; `deterministic`: those whose result is the same bit for bit.
const RuleSet& combining(bool deterministic);
/// Sums of f16 and bf16 with every rounding kept, and of bytes.
const RuleSet& combining_narrow();
/// A gate or a norm joins the convolution that reads it.
const RuleSet& scaling();
/// A 1x1 convolution joins the one a channel that reads it.
const RuleSet& banding();
/// Products and a softmax that are attention.
const RuleSet& attending();
/// The nodes that `attending` makes one layer of, the last of which is `last`, in order; none where it does not fire.
std::vector<const ir::Node*> written_attention(const ir::Graph& graph, const ir::Node& last);

}  // namespace hetnn::passes
