// The only way to build or change a graph: keeps use lists, order, names and source locations right.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/ir/graph.h"

namespace hetnn::ir {

/// Edits one graph. New nodes go before the insertion point (the end by default) and get their types inferred, missing
/// attributes filled with defaults, and, where none is given, the location of the insertion point.
class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph), at_(graph.nodes_.end()) {}

  Graph& graph() { return graph_; }

  /// InvalidModel where the type does not say soundly what its integers stand for.
  Value* add_input(std::string_view name, Type type);
  /// Appends an output; an empty name takes the value's.
  void add_output(Value* value, std::string_view name = {});

  /// Makes output `index` another value; its name stays.
  void set_output(size_t index, Value* value);

  /// New nodes go before `node`; null means at the end.
  void insert_before(const Node* node);
  void insert_after(const Node* node);

  /// Adds a node and returns it. Throws InvalidModel when inputs or attributes do not fit the operator (nothing is
  /// added then). `name` is a wish: made unique if taken; empty takes the operator's name.
  Node* create(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}, std::string_view name = {},
               Loc loc = {});
  /// As create, for operators of one output.
  Value* add(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}, std::string_view name = {},
             Loc loc = {}) {
    return create(op, std::move(inputs), std::move(attrs), name, std::move(loc))->output();
  }
  /// A node as one of another graph is, whose inputs have twins here; its outputs get theirs. `attrs` in place of its
  /// own.
  Node* copy(const Node& node, std::map<const Value*, Value*>& twins, Attrs attrs);
  Node* copy(const Node& node, std::map<const Value*, Value*>& twins) { return copy(node, twins, node.attrs()); }
  Value* constant(Tensor value, std::string_view name = {}, const std::optional<Quant>& quant = std::nullopt);

  /// Makes every reader of `from` (graph outputs too) read `to` instead. Types must agree. The name goes along when
  /// `from` is about to die and `to` bears a made-up one: use `rename`.
  void replace_uses(Value* from, Value* to);
  /// Makes input `index` of `node` read `to`, and infers the node's outputs again.
  void set_input(Node* node, size_t index, Value* to);
  void set_attr(Node* node, std::string_view attr, Attr value);
  /// Lets go of the bytes of a constant that nobody reads any more; its type is left.
  static void forget(Node* constant);
  /// Removes a node that nobody reads. InternalError otherwise.
  void erase(Node* node);
  /// Removes all nodes whose outputs nobody reads; the number removed.
  size_t erase_dead();
  /// Gives a value a name, taking it away from `previous` holder's value if that is being replaced.
  void rename(Value* value, std::string_view name);
  /// Moves a node to before another (the order must stay topological; verify checks).
  void move_before(Node* node, const Node* before);

  /// Every node created since construction or the last call, oldest first.
  std::vector<Node*> take_created();

 private:
  /// Keeps the node's call true of its input `index`.
  static void tell(Node* node, size_t index);
  static void infer_again(Node* node);
  void drop_use(Value* value, Node* node, size_t index);

  Graph& graph_;
  std::list<std::unique_ptr<Node>>::iterator at_;
  std::vector<Node*> created_;
};

}  // namespace hetnn::ir
