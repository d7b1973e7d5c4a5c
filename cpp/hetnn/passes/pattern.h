// Patterns: trees of operators with captured values, as data, and how they match a graph.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::passes {

/// What one position of a rule's left side must be. A name that stands twice stands for one and the same value.
struct Pattern {
  enum class Kind : uint8_t {
    any,                // any value
    constant,           // the value of a constant node
    optional_constant,  // an absent input, or the value of a constant node
    op,                 // the first output of a node of one of `ops`, whose leading inputs match `inputs`
  };
  Kind kind = Kind::any;
  std::string_view capture;  // empty: not captured
  std::vector<std::string_view> ops;
  std::vector<Pattern> inputs;
  bool exclusive = false;  // kind op, below the root: nobody but the matched reader uses any output of that node
};

Pattern any(std::string_view capture);
Pattern constant(std::string_view capture);
Pattern optional_constant(std::string_view capture);
/// Where the operator is commutative, its two inputs match in either order.
Pattern op(std::string_view name, std::vector<Pattern> inputs = {}, std::string_view capture = {});
Pattern one_of(std::vector<std::string_view> names, std::vector<Pattern> inputs = {}, std::string_view capture = {});
Pattern exclusive(Pattern pattern);

/// A place in a graph that a pattern fits.
class Match {
 public:
  ir::Node* root() const { return root_; }
  /// A captured value; InternalError when the pattern has no such capture. Null for an absent optional constant.
  ir::Value* value(std::string_view capture) const;
  /// The node that writes a captured value.
  ir::Node* node(std::string_view capture) const;
  /// The captured constant, or null for an absent one.
  const Tensor* tensor(std::string_view capture) const;
  /// The nodes that matched operators below the root, constants left out.
  const std::vector<ir::Node*>& inner_nodes() const { return inner_; }

 private:
  friend class Matcher;
  ir::Node* root_ = nullptr;
  std::vector<ir::Node*> inner_;
  std::vector<std::pair<std::string_view, ir::Value*>> captures_;
};

/// Whether `pattern` (of kind op) fits the graph at `root`. Tries every order of commutative inputs, in a fixed order.
std::optional<Match> match(const Pattern& pattern, ir::Node* root, const ir::Graph& graph);

/// `maximum(x, mul(x, <c>))`: for the documentation. Constants stand in angle brackets.
std::string to_string(const Pattern& pattern);

}  // namespace hetnn::passes
