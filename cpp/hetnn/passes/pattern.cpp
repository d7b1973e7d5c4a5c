// Matching: a list of goals (pattern, value) solved one by one, with backtracking over commutative inputs.
#include "hetnn/passes/pattern.h"

#include <algorithm>

#include "hetnn/base/error.h"

namespace hetnn::passes {

Pattern any(std::string_view capture) {
  return {.kind = Pattern::Kind::any, .capture = capture, .ops = {}, .inputs = {}};
}
Pattern constant(std::string_view capture) {
  return {.kind = Pattern::Kind::constant, .capture = capture, .ops = {}, .inputs = {}};
}
Pattern optional_constant(std::string_view capture) {
  return {.kind = Pattern::Kind::optional_constant, .capture = capture, .ops = {}, .inputs = {}};
}
Pattern op(std::string_view name, std::vector<Pattern> inputs, std::string_view capture) {
  return one_of({name}, std::move(inputs), capture);
}
Pattern one_of(std::vector<std::string_view> names, std::vector<Pattern> inputs, std::string_view capture) {
  return {.kind = Pattern::Kind::op, .capture = capture, .ops = std::move(names), .inputs = std::move(inputs)};
}
Pattern exclusive(Pattern pattern) {
  pattern.exclusive = true;
  return pattern;
}

ir::Value* Match::value(std::string_view capture) const {
  for (const auto& [name, captured] : captures_) {
    if (name == capture) return captured;
  }
  throw_internal_error(__FILE__, __LINE__, "captured", text("the pattern captures no '", capture, "'"));
}

ir::Node* Match::node(std::string_view capture) const {
  ir::Node* producer = value(capture)->producer();
  HETNN_ASSERT(producer, "'", capture, "' is an input of the graph");
  return producer;
}

const Tensor* Match::tensor(std::string_view capture) const {
  const ir::Value* captured = value(capture);
  return captured ? &captured->producer()->tensor("value") : nullptr;
}

class Matcher {
 public:
  explicit Matcher(const ir::Graph& graph) : graph_(graph) {}

  std::optional<Match> run(const Pattern& pattern, ir::Node* root) {
    match_.root_ = root;
    if (!is_one_of(pattern, *root) || !bind(pattern, root->output())) return std::nullopt;
    if (!expand(pattern, *root, {})) return std::nullopt;
    return std::move(match_);
  }

 private:
  struct Goal {
    const Pattern* pattern;
    ir::Value* value;
  };

  static bool is_one_of(const Pattern& pattern, const ir::Node& node) {
    return std::find(pattern.ops.begin(), pattern.ops.end(), node.op().name) != pattern.ops.end();
  }

  bool bind(const Pattern& pattern, ir::Value* value) {
    if (pattern.capture.empty()) return true;
    for (const auto& [name, captured] : match_.captures_) {
      if (name == pattern.capture) return captured == value;
    }
    match_.captures_.emplace_back(pattern.capture, value);
    return true;
  }

  bool read_elsewhere(const ir::Node& node) const {
    size_t reads = 0;
    for (const ir::Value* output : node.outputs()) {
      reads += output->uses().size();
      if (graph_.is_output(output)) return true;
    }
    return reads != 1;
  }

  // Adds the inputs of `node` to the goals, in each order that its operator allows, and solves all of them.
  bool expand(const Pattern& pattern, const ir::Node& node, std::vector<Goal> goals) {
    if (pattern.inputs.size() > std::max(node.inputs().size(), node.op().inputs.size())) return false;
    const size_t first = goals.size();
    for (size_t k = pattern.inputs.size(); k-- > 0;) goals.push_back({&pattern.inputs[k], node.input(k)});
    const bool swap = node.op().has(ops::Trait::commutative) && pattern.inputs.size() == 2;
    if (!swap) return solve(std::move(goals));
    const size_t captures = match_.captures_.size(), inner = match_.inner_.size();
    if (solve(goals)) return true;
    match_.captures_.resize(captures);
    match_.inner_.resize(inner);
    std::swap(goals[first].value, goals[first + 1].value);
    return solve(std::move(goals));
  }

  bool solve(std::vector<Goal> goals) {
    while (!goals.empty()) {
      const Goal goal = goals.back();
      goals.pop_back();
      ir::Node* producer = goal.value ? goal.value->producer() : nullptr;
      switch (goal.pattern->kind) {
        case Pattern::Kind::any:
          if (!goal.value || !bind(*goal.pattern, goal.value)) return false;
          break;
        case Pattern::Kind::optional_constant:
          if (goal.value && !(producer && producer->is_constant())) return false;
          if (!bind(*goal.pattern, goal.value)) return false;
          break;
        case Pattern::Kind::constant:
          if (!producer || !producer->is_constant() || !bind(*goal.pattern, goal.value)) return false;
          break;
        case Pattern::Kind::op:
          if (!producer || producer->output() != goal.value || !is_one_of(*goal.pattern, *producer)) return false;
          if (goal.pattern->exclusive && read_elsewhere(*producer)) return false;
          if (!bind(*goal.pattern, goal.value)) return false;
          match_.inner_.push_back(producer);
          return expand(*goal.pattern, *producer, std::move(goals));
      }
    }
    return true;
  }

  const ir::Graph& graph_;
  Match match_;
};

std::optional<Match> match(const Pattern& pattern, ir::Node* root, const ir::Graph& graph) {
  HETNN_ASSERT(pattern.kind == Pattern::Kind::op);
  return Matcher(graph).run(pattern, root);
}

std::string to_string(const Pattern& pattern) {
  std::string name(pattern.capture);
  switch (pattern.kind) {
    case Pattern::Kind::any:
      return name;
    case Pattern::Kind::constant:
      return "<" + name + ">";
    case Pattern::Kind::optional_constant:
      return "[" + name + "]";
    case Pattern::Kind::op:
      break;
  }
  std::string out;
  for (std::string_view each : pattern.ops) out += (out.empty() ? "" : "|") + std::string(each);
  if (pattern.inputs.empty()) return out;
  out += "(";
  for (const Pattern& input : pattern.inputs) out += (&input == pattern.inputs.data() ? "" : ", ") + to_string(input);
  return out + ")";
}

}  // namespace hetnn::passes
