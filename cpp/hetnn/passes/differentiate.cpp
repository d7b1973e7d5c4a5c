// What comes to a node's outputs is handed to its inputs, from the last node to the first.
#include "hetnn/passes/differentiate.h"

#include <algorithm>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/ops/elementwise/readings.h"
#include "hetnn/ops/infer.h"
#include "hetnn/passes/gradient_values.h"

namespace hetnn::passes {
namespace {

class Reverse {
 public:
  Reverse(ir::Rewriter& rewriter, std::span<ir::Value* const> xs)
      : maker_(rewriter), xs_(xs.begin(), xs.end()), moving_(xs.begin(), xs.end()) {}

  // Those of the nodes that hand on what the xs change, in order.
  std::vector<ir::Node*> way(const std::vector<ir::Node*>& nodes) {
    std::vector<ir::Node*> out;
    for (ir::Node* node : nodes) {
      if (std::ranges::none_of(node->inputs(), [&](const ir::Value* x) { return moving_.contains(x); })) continue;
      bool moves = false;
      for (ir::Value* y : node->outputs()) moves |= is_float(y->dtype()) && moving_.insert(y).second;
      if (moves) out.push_back(node);
    }
    return out;
  }

  void seed(ir::Value* y) {
    if (moving_.contains(y)) came_[y] = maker_.full(y->dtype(), 1, y->shape());
    maker_.take_made();
  }

  void hand_back(const std::vector<ir::Node*>& way) {
    for (auto node = way.rbegin(); node != way.rend(); ++node) {
      std::vector<ir::Value*> came;
      bool any = false;
      for (ir::Value* y : (*node)->outputs()) {
        const auto found = came_.find(y);
        const bool has = found != came_.end() && !xs_.contains(y);
        came.push_back(has ? found->second : nullptr);
        any |= has;
      }
      if (!any) continue;
      maker_.stand_for(*node);
      pass(**node, came);
      maker_.take_made();
    }
  }

  ir::Value* found(ir::Value* x) {
    const auto came = came_.find(x);
    maker_.stand_for(nullptr);
    return came == came_.end() ? maker_.full(x->dtype(), 0, x->shape()) : came->second;
  }

  void refuse_missing() const {
    if (missing_.empty()) return;
    std::string all;
    for (const std::string& each : missing_) all += (all.empty() ? "" : "; ") + each;
    throw Unsupported(text("a derivative passes operators that have none: ", all,
                           ". Derive by values behind them, or write them in operators that have one."));
  }

 private:
  void pass(const ir::Node& node, const std::vector<ir::Value*>& came) {
    if (const GradientRule* rule = gradient_rule(node.op().name)) {
      by_rule(node, *rule, came);
    } else if (const auto function = ops::function_from_name(node.op().name)) {
      by_slopes(node, *function, came[0]);
    } else {
      miss(node, "");
    }
  }

  void by_rule(const ir::Node& node, const GradientRule& rule, const std::vector<ir::Value*>& came) {
    RuleAt at(rule, node, came, maker_);
    maker_.take_made();
    std::vector<std::pair<ir::Value*, ir::Value*>> meanings;
    for (size_t k = 0; k < came.size(); ++k) {
      if (!came[k] || !at.has_meaning(k)) continue;
      if (ir::Value* meaning = at.meaning(k)) meanings.emplace_back(meaning, came[k]);
    }
    if (!meanings.empty()) {
      const std::vector<ir::Node*> inner = way(maker_.take_made());
      for (const auto& [meaning, part] : meanings) add(meaning, part);
      return hand_back(inner);
    }
    for (size_t k = 0; k < node.inputs().size(); ++k) {
      if (!node.input(k) || !moving_.contains(node.input(k))) continue;
      const auto part = at.gradient(k);
      if (!part) {
        const auto& defs = node.op().inputs;
        miss(node, text(" by ", defs[std::min(k, defs.size() - 1)].name, " with these attributes"));
      } else if (*part) {
        add(node.input(k), *part);
      }
    }
  }

  void by_slopes(const ir::Node& node, ops::Function function, ir::Value* came) {
    const std::vector<ops::Expression> slopes = ops::slopes_of(function);
    const DType dtype = came->dtype();
    std::map<std::string, ir::Value*> operands = {{"x", node.input(0)}, {"y", node.input(1)}};
    for (const std::string_view name : ops::function_def(function).constants) {
      if (!name.empty()) operands[std::string(name)] = maker_.number(dtype, node.real(name));
    }
    for (size_t k = 0; k < slopes.size(); ++k) {
      if (!moving_.contains(node.input(k))) continue;
      if (!slopes[k]) {
        miss(node, "");
      } else if (!slopes[k].is(0)) {
        add(node.input(k), times(came, slopes[k], operands));
      }
    }
  }

  // Of two slopes one is chosen together with what came, so that the choice follows what made that.
  ir::Value* times(ir::Value* came, const ops::Expression& slope, const std::map<std::string, ir::Value*>& operands) {
    const DType dtype = came->dtype();
    if (slope.is(0)) return maker_.number(dtype, 0);
    if (slope.is(1)) return came;
    if (slope.is(-1)) return maker_.op("neg", {came});
    if (slope.op() != "where") return maker_.op("mul", {came, maker_.formula(slope, operands, dtype)});
    ir::Value* condition = maker_.formula(slope.in()[0], operands, dtype);
    ir::Value* chosen = times(came, slope.in()[1], operands);
    return maker_.op("where", {condition, chosen, times(came, slope.in()[2], operands)});
  }

  void add(ir::Value* x, ir::Value* part) {
    if (!moving_.contains(x)) return;
    part = fitted(part, x->shape());
    ir::Value*& known = came_[x];
    known = known ? maker_.op("add", {known, part}) : part;
  }

  // The sum along the axes that x was spread over, or the part spread along those of which it is the same.
  ir::Value* fitted(ir::Value* part, const Shape& x) {
    if (part->shape() == x) return part;
    const auto larger = ops::broadcast(part->shape(), x);
    HETNN_ASSERT(larger && (*larger == x || *larger == part->shape()), to_string(part->shape()), " for ", to_string(x));
    if (*larger == x) return maker_.op("expand", {part}, {{"shape", x}});
    const size_t more = part->shape().size() - x.size();
    std::vector<Dim> axes;
    for (size_t k = 0; k < part->shape().size(); ++k)
      if (k < more || x[k - more] != part->shape()[k]) axes.emplace_back(static_cast<int64_t>(k));
    part = maker_.op("sum", {part}, {{"axes", axes}, {"keepdim", true}});
    return part->shape() == x ? part : maker_.op("reshape", {part}, {{"shape", x}});
  }

  void miss(const ir::Node& node, const std::string& what) {
    const std::string at = ops::to_string(node.loc());
    missing_.push_back(ir::describe(node) + what + (at.empty() ? "" : " at " + at));
    for (ir::Value* x : node.inputs())
      if (x && moving_.contains(x)) add(x, maker_.full(x->dtype(), 0, x->shape()));  // others behind it are told too
  }

  Maker maker_;
  std::set<const ir::Value*> xs_, moving_;
  std::map<const ir::Value*, ir::Value*> came_;
  std::vector<std::string> missing_;
};

void check_real(const ir::Value* value) {
  if (!is_float(value->dtype()))
    throw InvalidModel(text("a derivative is of real values by real values; '", value->name(), "' is ",
                            to_string(value->type()), "."));
}

}  // namespace

std::vector<ir::Value*> differentiate(ir::Rewriter& rewriter, ir::Value* y, std::span<ir::Value* const> xs) {
  check_real(y);
  for (const ir::Value* x : xs) check_real(x);
  Reverse reverse(rewriter, xs);
  const auto all = rewriter.graph().nodes();
  const std::vector<ir::Node*> way = reverse.way({all.begin(), all.end()});
  reverse.seed(y);
  reverse.hand_back(way);
  reverse.refuse_missing();
  std::vector<ir::Value*> out;
  for (ir::Value* x : xs) out.push_back(reverse.found(x));
  return out;
}

std::string_view derivative_of(const ops::OpDef& op) {
  if (const GradientRule* rule = gradient_rule(op.name))
    return std::ranges::any_of(*rule, &Statement::is_gradient) ? "rule" : "meaning";
  const auto function = ops::function_from_name(op.name);
  return function && std::ranges::all_of(ops::slopes_of(*function), [](const auto& slope) { return bool(slope); })
             ? "formula"
             : "";
}

}  // namespace hetnn::passes
