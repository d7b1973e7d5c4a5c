// Cutting a placed graph into subgraphs, and taking one subgraph out as a graph of its own.
#pragma once

#include <string>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::plan {

/// One device visit of a cut graph. Values belong to that graph.
struct Subgraph {
  std::string device;
  std::vector<ir::Node*> nodes;     // in order, without constants
  std::vector<ir::Value*> inputs;   // read here, written by the caller or another subgraph; in order of first reading
  std::vector<ir::Value*> outputs;  // written here, read by another subgraph or returned; in node order
};

/// Where one node goes.
struct Placement {
  ir::Node* node;
  std::string device;
  int subgraph;
};

/// Annotates and reorders `graph` so that subgraphs are contiguous and in the order of their numbers (0, 1, …), with
/// all constants first; the stage becomes cut. `placements` holds every node but the constants once, in an order that
/// respects the edges. InternalError when it does not.
void cut(ir::Graph& graph, const std::vector<Placement>& placements);

/// Subgraphs in which nodes need sizes that others of them define fall into several: a device learns the sizes of a
/// visit before it begins. Those behind get new numbers.
void split_at_definitions(std::vector<Placement>& placements);

/// The subgraphs of a cut graph, by number.
std::vector<Subgraph> subgraphs_of(const ir::Graph& graph);

/// Some nodes of a graph as one subgraph, before it is cut: `nodes` in an order in which they can run.
Subgraph subgraph_of_nodes(const ir::Graph& graph, std::string device, std::vector<ir::Node*> nodes);

/// Whether a value that passes between subgraphs of a model lies channels last in memory: of four axes, no input or
/// output of the model, and not what a definition writes, which is plain.
bool passes_as_image(const ir::Graph& model, const ir::Value& value);

/// A graph of the subgraph's nodes and the constants they read (shared, not copied), with values named as in `graph`.
/// Its inputs and outputs are the subgraph's, in order; its stage is cut.
ir::Graph extract(const ir::Graph& graph, const Subgraph& subgraph);

}  // namespace hetnn::plan
