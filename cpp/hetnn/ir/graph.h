// The intermediate representation: graphs of nodes over typed values.
//
// Semantics
//   Values      A value is an immutable tensor, written once by its node or by the caller; nothing aliases. Backends
//               may share storage between values only where no reader can tell.
//   Shapes      Dims are integers or expressions of the graph's symbols, each symbol at least 0 and in its range.
//               Images are channels first (N,C,H,W); a scalar has rank 0. A dim may be 0.
//   Broadcast   Elementwise operators align dims at the right; a dim of 1 stretches. Nothing else broadcasts.
//   Types       Element types never convert silently: operands of one node agree, and conversions are nodes (`cast`,
//               `quantize`, `dequantize`).
//   Quantized   An integer value with scales stands for reals, scale · (q - zero point); without them it is an integer.
//               A node with quantized operands computes on those reals in f32 and rounds its result once, to nearest
//               even, saturated, NaN as 0. A device's integer arithmetic may differ by one step of the result.
//   Rounding    f32 and f64 follow IEEE 754, round to nearest even; f16 and bf16 compute in f32 and round once per
//               node. Sums may be taken in any order within an operator's tolerance.
//   NaN, inf    Propagate as the formula of the operator says; comparisons with NaN are false but `ne`; NaN is true.
//               Where one value is chosen (maximum, minimum, nary, relu, clamp, reduce_max, reduce_min, max_pool2d) NaN
//               wins, as in torch; ONNX leaves it open. sign(NaN) and sign(-0) are 0, as in torch.
//               Of clamp's bounds the upper wins where they cross, as in torch and ONNX. Which of -0 and 0 is chosen is
//               open, in torch too. Sorting puts NaN behind inf, as torch does.
//   Integers    Add, subtract, multiply, negate and take the absolute value modulo 2^bits, as in torch (ONNX leaves
//               overflow open): the least integer is its own absolute value, and its quotient by -1.
//               div cuts towards zero, as ONNX; torch's `/` of integers is one of reals, for which the importer casts,
//               and its div takes a rounding mode. Division by 0 is InvalidModel (torch: an error; ONNX: undefined).
//               pow multiplies, modulo 2^bits; by a negative power 1 stays 1, -1 alternates and all others, 0 too, give
//               0, as torch's tensors (torch refuses a negative number as exponent; ONNX leaves it open).
//               floor, ceil and round change nothing. clamp compares integers: with the least and greatest integers of
//               the type that keep to its bounds. Bounds in torch that are no integers make the result real.
//               Functions that leave the integers (exp, sqrt, sigmoid, reciprocal, gelu, ...) take reals alone; where
//               torch promotes integers the importer casts.
//   Bool        Computes as the integers 0 and 1, and what is not 0 is true: add and maximum are "or", mul and minimum
//               "and". torch forbids sub and neg, which are "not equal" and nothing here.
//   Casts       To integers reals are cut towards zero. NaN and what is out of range give the least integer; those
//               narrower than i32 are cut as i64 and wrap from there, so that -1.0 as u8 is 255 and NaN is 0 (so in
//               torch; ONNX: undefined). Integers wrap to narrower ones, as in torch and ONNX, and round
//               to nearest even where reals have fewer digits. Everything but 0 is true, NaN too. Reals out of range of
//               narrower reals give infinities; to f16 and bf16 all types go by way of f32.
//   Indices     Count from the back when negative, as far as the axis is long (of gather only where `from_end` says so:
//               torch's embedding and index_select take none); any other is InvalidModel, as in torch and ONNX. slice
//               alone cuts its bounds to the axis.
//   Nothing     Over no elements a sum is 0, a product 1, all true, any false, and a mean of reals NaN, as in torch and
//               ONNX; a mean of integers, reduce_max and reduce_min are InvalidModel (torch: an error; ONNX: the
//               infinities or the ends of the type).
//   Order       Nodes are kept in a topological order. A node has no effect but its outputs.
//   Changes     Only through Rewriter, which keeps use lists, order and source locations.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "hetnn/ops/op_def.h"

namespace hetnn::ir {

using ops::Attr;
using ops::AttrKind;
using ops::Attrs;
using ops::Loc;
using ops::OpDef;
using ops::Quant;
using ops::Trait;
using ops::Type;

class Node;

struct Use {
  Node* node;
  size_t index;  // among the node's inputs
  bool operator==(const Use&) const = default;
};

/// What one node writes or the caller passes. Owned by its node or graph.
class Value {
 public:
  const std::string& name() const { return name_; }
  const Type& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int rank() const { return static_cast<int>(type_.shape.size()); }
  /// The node that writes it; null for a graph input.
  Node* producer() const { return producer_; }
  /// Readers in no particular order; a node that reads twice appears twice. Graph outputs do not count.
  const std::vector<Use>& uses() const { return uses_; }

 private:
  friend class Graph;
  friend class Rewriter;
  Value(std::string name, Type type, Node* producer)
      : name_(std::move(name)), type_(std::move(type)), producer_(producer) {}

  std::string name_;
  Type type_;
  Node* producer_;
  std::vector<Use> uses_;
};

/// One operation: a call of an operator on values. There is no subclass per operator.
class Node {
 public:
  const ops::Call& call() const { return call_; }
  const OpDef& op() const { return *call_.op; }
  /// An absent optional input is null.
  const std::vector<Value*>& inputs() const { return inputs_; }
  Value* input(size_t index) const { return index < inputs_.size() ? inputs_[index] : nullptr; }
  const std::vector<Value*>& outputs() const { return output_pointers_; }
  Value* output(size_t index = 0) const { return output_pointers_[index]; }
  const Attrs& attrs() const { return call_.attrs; }
  const Loc& loc() const { return call_.loc; }
  /// Unique in its graph: the name of its first output (until it has one, the name that was asked for).
  const std::string& name() const { return call_.name; }

  bool flag(std::string_view attr) const { return call_.flag(attr); }
  Dim integer(std::string_view attr) const { return call_.integer(attr); }
  double real(std::string_view attr) const { return call_.real(attr); }
  const std::string& string(std::string_view attr) const { return call_.string(attr); }
  DType dtype(std::string_view attr) const { return call_.dtype(attr); }
  const std::vector<Dim>& integers(std::string_view attr) const { return call_.integers(attr); }
  const std::vector<double>& reals(std::string_view attr) const { return call_.reals(attr); }
  const Tensor& tensor(std::string_view attr) const { return call_.tensor(attr); }

  bool is_constant() const { return op().has(Trait::constant); }
  /// The constant behind input `index`, when a constant node writes it.
  const Tensor* constant_input(size_t index) const { return call_.constant(index); }

  /// What was folded into it: names and module paths by which it can be asked for besides its own.
  std::vector<std::string> aliases;
  /// Whether it goes by `name`: its own, that of its module, or an alias.
  bool is_called(std::string_view name) const;

  /// Annotations of later stages: device name (placed), index of the subgraph (cut) and of the launch (fused).
  std::string device;
  int subgraph = -1;
  int launch = -1;

 private:
  friend class Graph;
  friend class Rewriter;
  Node() = default;

  ops::Call call_;
  std::vector<Value*> inputs_;
  std::vector<std::unique_ptr<Value>> outputs_;
  std::vector<Value*> output_pointers_;
  std::list<std::unique_ptr<Node>>::iterator position_;
};

enum class Stage : uint8_t { imported, canonical, legal, placed, cut, fused, planned };
std::string_view stage_name(Stage stage);
std::optional<Stage> stage_from_name(std::string_view name);

/// State: a value that the model keeps from run to run. A run reads it as the graph's input of that name, and what it
/// returns under the output's name is the next value. `initial` is the first.
struct Mutation {
  std::string input;
  std::string output;
  Tensor initial;
  bool operator==(const Mutation&) const = default;
};

class Graph {
 public:
  explicit Graph(std::string name = "main") : name_(std::move(name)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;
  /// A deep copy (constants share their bytes).
  Graph clone() const;

  const std::string& name() const { return name_; }
  Stage stage = Stage::imported;
  std::vector<Symbol> symbols;
  std::vector<Mutation> mutations;
  /// The example's value of every symbol, for cost models.
  Bindings hints() const;

  std::vector<Value*> inputs() const;
  const std::vector<Value*>& outputs() const { return outputs_; }
  bool is_output(const Value* value) const;
  /// Name under which output `index` is returned (the model's own name, which need not be the value's).
  std::vector<std::string> output_names;

  /// The nodes in topological order. The list must not be changed but by Rewriter.
  class Nodes;
  Nodes nodes() const;
  size_t node_count() const { return nodes_.size(); }
  /// By name; null when there is none.
  Value* find_value(std::string_view name) const;

 private:
  friend class Rewriter;
  std::string unique_name(std::string_view wanted);

  std::string name_;
  std::vector<std::unique_ptr<Value>> inputs_;
  std::list<std::unique_ptr<Node>> nodes_;
  std::vector<Value*> outputs_;
  std::map<std::string, Value*, std::less<>> names_;
  std::map<std::string, size_t, std::less<>> suffixes_;  // last number given to a name that was taken
};

/// A range of Node* over a graph's nodes.
class Graph::Nodes {
 public:
  using List = std::list<std::unique_ptr<Node>>;
  class iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = Node*;
    using difference_type = std::ptrdiff_t;
    using pointer = Node* const*;
    using reference = Node*;
    iterator() = default;
    explicit iterator(List::const_iterator at) : at_(at) {}
    Node* operator*() const { return at_->get(); }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    iterator operator++(int) { return iterator(at_++); }
    iterator& operator--() {
      --at_;
      return *this;
    }
    iterator operator--(int) { return iterator(at_--); }
    bool operator==(const iterator&) const = default;

   private:
    List::const_iterator at_;
  };
  explicit Nodes(const List& list) : list_(&list) {}
  iterator begin() const { return iterator(list_->begin()); }
  iterator end() const { return iterator(list_->end()); }
  size_t size() const { return list_->size(); }

 private:
  const List* list_;
};
inline Graph::Nodes Graph::nodes() const { return Nodes(nodes_); }

/// How messages call a node: `conv2d 'layer1.0.conv1'`.
inline std::string describe(const Node& node) { return ops::describe(node.call()); }

}  // namespace hetnn::ir
