// What is known of the size of a graph's values, for forms that hold in a range only.
#pragma once

#include <map>
#include <string>

#include "hetnn/ir/graph.h"
#include "hetnn/passes/range.h"

namespace hetnn::passes {

/// Where every element of a value lies.
using Ranges = std::map<std::string, Range, std::less<>>;

/// The largest magnitudes of inputs, by name, that whoever wrote the model vouches for.
using Magnitudes = std::map<std::string, double>;

/// The ranges of all values by name, from the types of the inputs, the bounds of functions and the values of constants,
/// roundings included. Of real inputs nothing is known but what is said of them.
Ranges value_ranges(const ir::Graph& graph, const Magnitudes& inputs_within = {});

}  // namespace hetnn::passes
