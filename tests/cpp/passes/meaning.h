// Runs graphs by the reference meanings of their operators, and compares two graphs on the same inputs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

using Inputs = std::map<std::string, Tensor>;

/// The graph's outputs for inputs by name.
std::vector<Tensor> run(const ir::Graph& graph, const Inputs& inputs);

/// Values of every real input from a generator, rounded to its type (others: zeros).
Inputs make_inputs(const ir::Graph& graph, const std::function<float()>& next);

/// Seeded values: normal ones, in [-4, 4).
Inputs random_inputs(const ir::Graph& graph, uint32_t seed);
/// Seeded values mixed with -0, subnormals, large and tiny numbers; all finite.
Inputs edge_inputs(const ir::Graph& graph, uint32_t seed);
/// As edge_inputs, with NaN and both infinities too.
Inputs special_inputs(const ir::Graph& graph, uint32_t seed);

/// Largest |a - b| over the largest finite |a|; infinite when shapes differ or one is NaN or infinite alone. Results
/// that are both NaN, or the same infinity, agree.
double difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

}  // namespace hetnn::passes
