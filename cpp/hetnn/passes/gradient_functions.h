// Functions of sizes that gradient rules call: of what is known when a graph is made.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hetnn/passes/gradient_values.h"

namespace hetnn::passes {

using Dims = std::vector<Dim>;
using Arguments = std::vector<Item>;
using SizeFunction = Item (*)(const Arguments&);

/// By its name; null where there is none.
SizeFunction size_function(std::string_view name);

template <typename T>
bool is(const Item& item) {
  return std::holds_alternative<T>(item);
}

/// The tensor that an item is, or null; of a node its first output.
const ir::Value* value_in(const Item& item);
std::optional<double> real_in(const Item& item);
/// A list, or the list of one size.
Dims listed(const Item& item);
/// Of an axis or entry that may count from the back.
size_t place_of(const Dim& axis, size_t rank);

}  // namespace hetnn::passes
