// Which nodes integers can compute for the reals that they stand for: what rules and quantizers know of operators.
#pragma once

#include <optional>
#include <string_view>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// Layers of which integers are known to stand for the reals: those that accelerators have, and functions of a value.
bool computes(const ir::Node& node);
/// relu and clamp. Rounding keeps order, so a value may be bounded before or behind it.
bool bounds(const ir::Node& node);
/// Movement of one value, the largest of windows too: what is moved is rounded before or behind.
bool moves(const ir::Node& node);
/// A convolution the other way round, which becomes convolutions once its operands are integers.
bool is_transposed(const ir::Node& node);
/// A layer of products has a bias as its third input, which is no activation.
bool has_bias(const ir::Node& node);

/// How many leading inputs are values that integers stand for; behind them biases of sums, or parameters of reals.
size_t operands_of(const ir::Node& node);

/// What a node on f32 is to one who gives its values integers.
enum class Role : uint8_t {
  weights,   // sums of products with constant weights
  product,   // sums of products of two values
  several,   // sums, products and extremes of several values, means of windows
  function,  // of one value, element by element, also with constants a channel
  rectify,   // max(x, 0), which any positive factor passes
  bound,     // `bounds` otherwise
  moves,     // `moves`: the result is at the scale of what is moved
  pool,      // the largest of windows: so too, and channels stay what they are
  joins,     // several values at one scale
  rows,      // shares or normalization of rows of one value, with constants of reals
  either,    // one of two numbers by booleans: no integers for itself, and exact where a layer reads it as such
  hides,     // a sum with zeros and kHides: what is hidden may be rounded to whatever is far below the others
};
/// Layers of several values become such of two, which integers compute: each step gets a scale of its own.
void several_to_pairs(ir::Graph& graph);
/// Added to a score it leaves no share: the least of what attention's masks become.
inline constexpr double kHides = -1e4;
std::string_view role_name(Role role);
/// None for a node that stays as it is.
std::optional<Role> role_of(const ir::Node& node);

}  // namespace hetnn::passes
