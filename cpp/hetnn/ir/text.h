// The text form of graphs: printing and parsing, exact inverses of each other.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::ir {

/// Characters of a value's name that stands without quotes, beside letters and digits.
inline constexpr std::string_view kNameMarks = "_.+-";

struct PrintOptions {
  /// Write the values of large constants; without them the text is for reading and does not parse back.
  bool constants = true;
  bool locations = true;
  /// Where values of large constants stand instead, in bytes; states are then kept elsewhere too.
  std::function<int64_t(const Tensor&)> place = {};
};

/// What a text that leaves values out refers to: constants by where they stand, states by the names of their inputs.
struct Elsewhere {
  std::function<Tensor(DType, std::vector<int64_t> shape, int64_t offset_bytes)> constant;
  std::function<Tensor(DType, std::vector<int64_t> shape, const std::string& input)> state;
};

/// Grammar, by example:
///   graph @mlp {stage = canonical, symbols = [n: 1..64 = 8]} (%x: f32[n,784]) -> (%y as "logits") {
///     %w = constant() {value = f32[10,784] "base64 of little-endian values"}
///     %y = linear(%x, %w, _) : f32[n,10] on cpu in 0 launch 2 loc("fc1", "model.py":12) also("bn1")
///   }
/// A name of other characters than letters, digits, `_`, `.`, `+` and `-` is quoted: `%"input:0"`.
/// Attributes at their default are left out; a constant of at most 16 values is written as numbers. In place of values
/// that stand elsewhere is `at 640`, the byte they begin at, and of a state's `kept`.
std::string print(const Graph& graph, const PrintOptions& options = {});

/// Throws InvalidModel with line and column of what it cannot read; types are inferred and compared with those written.
Graph parse(std::string_view source, const Elsewhere& elsewhere = {});

/// A graph of one node, from a one-line form whose inputs are types: `conv2d(f32[1,3,8,8], f32[4,3,3,3]) {stride =
/// [2,2]}`. A type may be followed by numbers to make the input a constant: `f32[2] {0.5, 1}`.
Graph parse_sample(std::string_view source);

}  // namespace hetnn::ir
