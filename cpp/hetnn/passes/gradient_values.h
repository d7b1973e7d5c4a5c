// What gradient rules say of a node: values computed in them, and the nodes that they make.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "hetnn/ir/rewriter.h"
#include "hetnn/ops/elementwise/expression.h"
#include "hetnn/passes/gradient_rules.h"

namespace hetnn::passes {

/// Makes nodes where the rewriter stands and remembers them.
class Maker {
 public:
  explicit Maker(ir::Rewriter& rewriter) : rewriter_(rewriter) {}

  /// With the name and the place in the user's model of the node whose gradient is made.
  ir::Node* node(std::string_view op, std::vector<ir::Value*> inputs, ops::Attrs attrs = {});
  ir::Value* op(std::string_view name, std::vector<ir::Value*> inputs, ops::Attrs attrs = {}) {
    return node(name, std::move(inputs), std::move(attrs))->output();
  }
  /// A tensor of rank 0.
  ir::Value* number(DType dtype, double value);
  /// One that is this number everywhere.
  ir::Value* full(DType dtype, double value, const Shape& shape);
  /// A size that may depend on symbols, in an element type: of one element.
  ir::Value* size(DType dtype, const Dim& dim);
  /// A size by which a node says how many there are: where it is open, a symbol of its own.
  Dim found(const Dim& dim);
  /// A formula of operands by their names.
  ir::Value* formula(const ops::Expression& formula, const std::map<std::string, ir::Value*>& operands, DType dtype);

  void stand_for(const ir::Node* of) { of_ = of; }
  /// What has been made since the last call, oldest first.
  std::vector<ir::Node*> take_made() { return std::exchange(made_, {}); }

 private:
  ir::Rewriter& rewriter_;
  const ir::Node* of_ = nullptr;
  std::vector<ir::Node*> made_;
  std::map<std::pair<DType, double>, ir::Value*> numbers_;
};

struct Absent {};  // an input that the node does not have
struct Zero {};    // nothing came to an output

/// What a term of a rule gives.
using Item = std::variant<Absent, Zero, bool, Dim, double, std::string, DType, std::vector<Dim>, std::vector<double>,
                          ir::Value*, ir::Node*>;

/// A rule at a node.
class RuleAt {
 public:
  /// `came`: what came to each output, null for nothing.
  RuleAt(const GradientRule& rule, const ir::Node& node, std::vector<ir::Value*> came, Maker& maker)
      : rule_(rule), node_(node), came_(std::move(came)), maker_(maker) {}

  /// Whether the rule says what an output is.
  bool has_meaning(size_t output) const;
  /// What an output is of smaller operators.
  ir::Value* meaning(size_t output);
  /// What comes to an input, null for nothing; none where the rule does not say it of these attributes.
  std::optional<ir::Value*> gradient(size_t input);

 private:
  struct Functions;

  const Statement* statement(std::string_view name, bool is_gradient);
  Item named(const std::string& name);
  Item evaluate(const Term& term);
  Item call(const Term& term);
  Item infix(const std::string& sign, const Item& a, const Item& b);
  Item cotangent(const Term& term);
  ir::Value* tensor(const Item& item, DType dtype);
  ir::Value* value(const Item& item) { return tensor(item, node_.output()->dtype()); }
  [[noreturn]] void fail(const std::string& what) const;

  const GradientRule& rule_;
  const ir::Node& node_;
  std::vector<ir::Value*> came_;
  Maker& maker_;
  size_t place_ = 0;  // of the input asked for, among those of a last one that is many
  std::map<std::string, Item, std::less<>> known_;
};

}  // namespace hetnn::passes
