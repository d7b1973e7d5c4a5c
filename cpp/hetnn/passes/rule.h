// Rules: a rewrite as data (name, equation, pattern, guards, exactness) with the function that builds its right side.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/ir/rewriter.h"
#include "hetnn/passes/pattern.h"

namespace hetnn::passes {

/// What a rule's right side is built with: nodes that take the root's place in the order and its source location.
/// A right side changes nothing but by this; the driver then redirects readers, and undoes everything if it throws.
class Build {
 public:
  /// `affords` as ApplyOptions.
  Build(ir::Rewriter& rewriter, const Match& match, std::function<bool(int64_t bytes)> affords)
      : rewriter_(rewriter), root_(match.root()), affords_(std::move(affords)) {}

  ir::Value* op(std::string_view name, std::vector<ir::Value*> inputs, ops::Attrs attrs = {});
  ir::Value* constant(Tensor value, const std::optional<ops::Quant>& quant = std::nullopt);
  /// A constant of `dtype` from doubles, rounded once.
  ir::Value* constant(DType dtype, std::vector<int64_t> shape, std::span<const double> values);
  /// A node of the same operator and attributes as `like`, with other inputs and some attributes changed. As the result
  /// of a rule it also keeps the name of `like`; that of the root becomes an alias.
  ir::Value* like(const ir::Node& like, std::vector<ir::Value*> inputs, const ops::Attrs& changes = {});

  ir::Value* relu(ir::Value* x) { return op("relu", {x}); }
  ir::Value* add(ir::Value* a, ir::Value* b) { return op("add", {a, b}); }
  ir::Value* sub(ir::Value* a, ir::Value* b) { return op("sub", {a, b}); }
  ir::Value* mul(ir::Value* a, ir::Value* b) { return op("mul", {a, b}); }
  /// The same elements under another shape; `x` itself when it has that shape. Of a constant another constant.
  ir::Value* reshape(ir::Value* x, const Shape& shape);

  /// Whether a constant of this shape is worth making. A rule asks before it makes one that may be much larger than
  /// what it reads, and declines on a no.
  bool affords(DType dtype, std::span<const int64_t> shape) const;

  const ir::Graph& graph() const { return rewriter_.graph(); }

  /// From now on new nodes go right behind `node`, for a right side that other readers than the root will read.
  void insert_after(const ir::Node* node) { rewriter_.insert_after(node); }
  /// Also makes every reader of `from`, a value that a matched node writes, read `to`.
  void also_replace(ir::Value* from, ir::Value* to) { replaced_.emplace_back(from, to); }
  const std::vector<std::pair<ir::Value*, ir::Value*>>& replaced() const { return replaced_; }
  /// The node that `made` is like, if it was made like one.
  const ir::Node* model_of(const ir::Value* made) const;

 private:
  ir::Rewriter& rewriter_;
  ir::Node* root_;
  std::function<bool(int64_t bytes)> affords_;
  std::vector<std::pair<ir::Value*, ir::Value*>> replaced_;
  std::vector<std::pair<const ir::Value*, const ir::Node*>> likenesses_;
};

/// A condition beside the pattern, with the sentence that the documentation prints.
struct Guard {
  std::string_view text;
  bool (*holds)(const Match&);
};

struct Rule {
  std::string_view name;
  std::string_view equation;  // in the notation of the pattern's captures
  Pattern pattern;
  std::vector<Guard> guards;
  /// What may differ from the original: "bit for bit", "exact in real arithmetic", with the behaviour at NaN and inf.
  std::string_view exactness;
  /// The value that replaces the root's first output; null declines, and then nothing has happened.
  ir::Value* (*rewrite)(const Match&, Build&);
  /// Whether it holds for quantized values, too: its right side must state the scales of its results.
  bool quantized = false;
  /// How far a result may be from what the left side gives before both are rounded to integers, in their steps: about
  /// the share of the integers that then differ by one. 0: both round alike; null: always. `deterministic` asks for 0.
  double (*steps_apart)(const Match&) = nullptr;
};

/// The axes of its input in the order of a permutation's result, counted from the front; and as an attribute.
std::vector<size_t> order_of_axes(const ir::Node& permute);
std::vector<Dim> as_dims(const std::vector<size_t>& order);

/// Named rules in the order in which they are tried.
struct RuleSet {
  std::string_view name;
  std::string_view doc;
  std::vector<Rule> rules;
};

/// Whether all integers of a node's attribute are `value`.
bool all_are(const ir::Node& node, std::string_view attr, int64_t value);
/// Whether a convolution of images has filters of one tap and no groups, and of those whether each pixel of the result
/// is computed from the one in its place.
bool has_one_tap(const ir::Node& conv);
bool is_pointwise(const ir::Node& conv);

/// Every guard and the pattern.
std::optional<Match> match(const Rule& rule, ir::Node* root, const ir::Graph& graph);

}  // namespace hetnn::passes
