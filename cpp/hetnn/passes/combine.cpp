// Trees of two-operand nodes as one n-ary layer.
#include "hetnn/passes/combine.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "hetnn/base/narrow_float.h"
#include "hetnn/ops/infer.h"
#include "hetnn/passes/apply_rules.h"
#include "hetnn/passes/numbers.h"
#include "hetnn/passes/value_ranges.h"

namespace hetnn::passes {
namespace {

constexpr size_t kMostTerms = 100;

enum class Family : uint8_t { sum, product, maximum, minimum };
constexpr std::string_view name_of(Family family) {
  constexpr std::string_view kNames[] = {"add", "mul", "maximum", "minimum"};
  return kNames[static_cast<size_t>(family)];
}

struct Term {
  ir::Value* value;
  double coefficient = 1;
};
using Terms = std::vector<Term>;

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::abs(std::frexp(value, &exponent)) == 0.5;
}

bool is_finite(const ir::Graph& graph, const ir::Value& value) {
  return std::isfinite(value_ranges(graph).at(value.name()).largest());
}

// `x c` of halves with a number of f32, as torch computes it: rounded once, like a term of a layer.
std::optional<Term> multiple_of_half(const ir::Graph& graph, ir::Node* node) {
  static const Pattern pattern = op("cast", {op("mul", {op("cast", {any("x")}), constant("c")})});
  const ops::Type& type = node->output()->type();
  const std::optional<Match> found = is_narrow_float(type.dtype) ? match(pattern, node, graph) : std::nullopt;
  const std::optional<double> c = found ? single_value(*found->tensor("c")) : std::nullopt;
  if (!c || found->value("x")->type() != type || node->input(0)->type() != ops::Type{DType::f32, type.shape})
    return std::nullopt;
  return Term{found->value("x"), *c};
}

// `x c` or `x / c` with a number c and an x of the node's own type: x and its coefficient.
std::optional<Term> multiple(const ir::Graph& graph, ir::Node* node, bool deterministic) {
  if (const std::optional<Term> half = multiple_of_half(graph, node)) return half;
  static const Pattern product = op("mul", {any("x"), constant("c")}), quotient = op("div", {any("x"), constant("c")});
  std::optional<Match> found = match(product, node, graph);
  const bool divides = !found.has_value();
  if (divides) found = match(quotient, node, graph);
  const std::optional<double> c = found ? single_value(*found->tensor("c")) : std::nullopt;
  if (!c || found->value("x")->type() != node->output()->type()) return std::nullopt;
  // 0 x is NaN where x is infinite or NaN: without order the layer would not even read x.
  if (*c == 0 && !deterministic && !is_finite(graph, *found->value("x"))) return std::nullopt;
  if (!divides) return Term{found->value("x"), *c};
  // A quotient is rounded once; so is the product with the reciprocal of a power of two.
  if (*c == 0 || (deterministic && !is_power_of_two(*c))) return std::nullopt;
  return Term{found->value("x"), 1 / *c};
}

// A number is no operand to be read: as a step of its own it costs less.
bool has_number(const ir::Node& node) {
  return std::any_of(node.inputs().begin(), node.inputs().end(), [](const ir::Value* input) {
    return input && input->producer() && input->producer()->is_constant() && elements(input->shape()) == Dim(1);
  });
}

template <Family kFamily, bool kDeterministic>
class Collector {
 public:
  Collector(const ir::Graph& graph, ir::Value* root) : graph_(graph), type_(root->type()) {
    const std::optional<Terms> whole = parts({root}, true);
    if (!whole) return;
    terms_ = *whole;
    for (size_t k = 0; k < terms_.size();) {
      const std::optional<Terms> inner = read_once(*terms_[k].value) ? parts(terms_[k], k == 0) : std::nullopt;
      if (!inner || terms_.size() - 1 + inner->size() > kMostTerms) {
        ++k;
        continue;
      }
      const auto at = terms_.erase(terms_.begin() + static_cast<std::ptrdiff_t>(k));
      terms_.insert(at, inner->begin(), inner->end());
      ++joined_;
    }
  }

  const Terms& terms() const { return terms_; }
  /// How many nodes besides the root became part of the layer.
  size_t joined() const { return joined_; }

 private:
  bool read_once(const ir::Value& value) const { return value.uses().size() == 1 && !graph_.is_output(&value); }

  // What a term is computed from, where that can be taken apart. In order, only the first term can: what comes behind
  // would be rounded in another order.
  std::optional<Terms> parts(const Term& term, bool first) const {
    static const Pattern negation = op("neg", {any("x")}), difference = op("sub", {any("a"), any("b")}),
                         pair = op(name_of(kFamily), {any("a"), any("b")}), inner_layer = op("nary");
    ir::Node* node = term.value->producer();
    const double c = term.coefficient;
    if (!node || node->is_constant() || term.value->type() != type_ || std::abs(c) != 1) return std::nullopt;
    // Coefficients are for reals.
    const bool weighs = kFamily == Family::sum && ops::is_real(type_);
    if (weighs) {
      if (const auto found = match(negation, node, graph_)) return Terms{{found->value("x"), -c}};
      if (const auto inner = multiple(graph_, node, kDeterministic))
        return Terms{{inner->value, c * inner->coefficient}};
    }
    if (has_number(*node) || (kDeterministic && !(first && c == 1))) return std::nullopt;
    if (match(pair, node, graph_)) {
      Terms both = {{node->input(0), c}, {node->input(1), c}};
      constexpr bool kExactSwap = kFamily == Family::sum || kFamily == Family::product;
      if (kDeterministic && kExactSwap && !continues(both[0]) && continues(both[1])) std::swap(both[0], both[1]);
      return both;
    }
    if (weighs && match(difference, node, graph_)) return Terms{{node->input(0), c}, {node->input(1), -c}};
    if (match(inner_layer, node, graph_) && node->string("op") == name_of(kFamily) &&
        node->flag("deterministic") == kDeterministic) {
      const std::vector<double>& coefficients = node->reals("coefficients");
      Terms all;
      for (size_t k = 0; k < node->inputs().size(); ++k)
        all.push_back({node->input(k), coefficients.empty() ? c : c * coefficients[k]});
      return all;
    }
    return std::nullopt;
  }

  bool continues(const Term& term) const { return read_once(*term.value) && parts(term, true).has_value(); }

  const ir::Graph& graph_;
  const ops::Type type_;
  Terms terms_;
  size_t joined_ = 0;
};

ir::Value* as_layer(Build& build, const Terms& terms, Family family, bool deterministic) {
  std::vector<ir::Value*> inputs;
  std::vector<double> coefficients;
  for (const Term& term : terms) {
    inputs.push_back(term.value);
    coefficients.push_back(term.coefficient);
  }
  if (std::all_of(coefficients.begin(), coefficients.end(), [](double c) { return c == 1; })) coefficients.clear();
  return build.op(
      "nary", std::move(inputs),
      {{"op", std::string(name_of(family))}, {"coefficients", coefficients}, {"deterministic", deterministic}});
}

bool is_half(const Match& m) { return is_narrow_float(m.root()->output()->dtype()); }

template <Family kFamily, bool kDeterministic>
ir::Value* combined(const Match& m, Build& build) {
  const Collector<kFamily, kDeterministic> collector(build.graph(), m.root()->output());
  Terms terms = collector.terms();
  // A sum of two halves alone is better than one of f32 between conversions.
  if (collector.joined() == 0 && (terms.size() < 2 || !is_half(m))) return nullptr;
  // Those of coefficient 0 that got here are finite.
  if (!kDeterministic && std::any_of(terms.begin(), terms.end(), [&](const Term& term) {
        return term.coefficient != 0 && term.value->type() == m.root()->output()->type();
      }))
    std::erase_if(terms, [](const Term& term) { return term.coefficient == 0; });
  return as_layer(build, terms, kFamily, kDeterministic);
}

bool is_f32(const Match& m) { return m.root()->output()->dtype() == DType::f32; }
bool is_byte(const Match& m) { return m.root()->output()->dtype() == DType::i8; }

constexpr std::string_view kReordered = "exact in real arithmetic; the order of roundings changes";
constexpr std::string_view kReorderedSum =
    "exact in real arithmetic; the order of roundings changes. What is multiplied by 0 is not read where its range is "
    "finite, and else stays an operand";
constexpr Guard kF32 = {"the values are f32", is_f32};

template <Family kFamily, bool kDeterministic>
Rule layer(std::string_view name, std::string_view equation, const Guard& type = kF32) {
  const Pattern pattern = kFamily == Family::sum ? one_of({"add", "sub"}, {any("a"), any("b")})
                                                 : op(name_of(kFamily), {any("a"), any("b")});
  const bool same_bits = kDeterministic || type.holds != is_f32;
  return {.name = name,
          .equation = equation,
          .pattern = pattern,
          .guards = {type},
          .exactness = same_bits                ? "bit for bit"
                       : kFamily == Family::sum ? kReorderedSum
                                                : kReordered,
          .rewrite = combined<kFamily, kDeterministic>};
}

// By itself no gain, but what a kernel makes and a step takes from something else needs a coefficient.
template <bool kDeterministic>
Rule difference(std::string_view name) {
  return {.name = name,
          .equation = "a - b = nary(b, a; -1, 1), behind the kernel that makes b",
          .pattern = op("sub", {any("a"), any("b")}),
          .guards = {kF32},
          .exactness = "bit for bit",
          .rewrite = [](const Match& m, Build& build) {
            return as_layer(build, {{m.value("b"), -1}, {m.value("a"), 1}}, Family::sum, kDeterministic);
          }};
}

// The nodes between a layer's operands and the node it takes the place of, operands first.
std::vector<const ir::Node*> nodes_within(const ir::Node& root, const ir::Node& layer) {
  const std::set<const ir::Value*> operands(layer.inputs().begin(), layer.inputs().end());
  std::vector<const ir::Node*> found, waiting = {&root};
  while (!waiting.empty()) {
    found.push_back(waiting.back());
    waiting.pop_back();
    for (const ir::Value* input : found.back()->inputs()) {
      if (input && !operands.contains(input) && input->producer() && !input->producer()->is_constant())
        waiting.push_back(input->producer());
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

// Which node a layer stands behind: the kernel that makes one of its operands takes it as a step, or takes what now
// reads the operand.
enum class Behind : uint8_t { none, layer, parts };
Behind stands_behind(const ir::Graph& graph, const ir::Node& layer, const FuseOptions& options) {
  Behind found = Behind::none;
  for (const ir::Value* operand : layer.inputs()) {
    const ir::Node* producer = operand ? operand->producer() : nullptr;
    if (!producer || producer->is_constant() || graph.is_output(operand) || operand != producer->output(0)) continue;
    const ir::Node* reader = nullptr;
    bool shared = false;
    for (const ir::Use& use : operand->uses()) {
      if (use.node == &layer) continue;
      shared = shared || (reader && reader != use.node);
      reader = use.node;
    }
    if (!reader || shared) continue;
    if (options.can_follow({&producer, 1}, layer)) return Behind::layer;
    if (options.can_follow({&producer, 1}, *reader)) found = Behind::parts;
  }
  return found;
}

}  // namespace

const RuleSet& combining(bool deterministic) {
  static const RuleSet free = {
      "combining",
      "Sums, products and extremes of more than two operands as one n-ary layer, on devices that run it.",
      {layer<Family::sum, false>("sum_as_nary", "c1 x1 + (c2 x2 - x3) + ... = nary(x1, x2, x3, ...)"),
       difference<false>("difference_as_nary"),
       layer<Family::product, false>("product_as_nary", "x1 (x2 x3) ... = nary(x1, x2, x3, ...)"),
       layer<Family::maximum, false>("maximum_as_nary", "max(x1, max(x2, x3)) ... = nary(x1, x2, x3, ...)"),
       layer<Family::minimum, false>("minimum_as_nary", "min(x1, min(x2, x3)) ... = nary(x1, x2, x3, ...)")}};
  static const RuleSet ordered = {
      "combining_deterministic",
      "The same where every product and sum must be rounded as it was written.",
      {layer<Family::sum, true>("sum_as_nary_deterministic", "((c1 x1 + c2 x2) - x3) + ... = nary(x1, x2, x3, ...)"),
       difference<true>("difference_as_nary_deterministic"),
       layer<Family::product, true>("product_as_nary_deterministic", "((x1 x2) x3) ... = nary(x1, x2, x3, ...)"),
       layer<Family::maximum, true>("maximum_as_nary_deterministic",
                                    "max(max(x1, x2), x3) ... = nary(x1, x2, x3, ...)"),
       layer<Family::minimum, true>("minimum_as_nary_deterministic",
                                    "min(min(x1, x2), x3) ... = nary(x1, x2, x3, ...)")}};
  return deterministic ? ordered : free;
}

const RuleSet& combining_narrow() {
  static const RuleSet set = {
      "combining_narrow",
      "Sums of f16, bf16 and i8 as one n-ary layer, on devices that run it: before they are computed in f32.",
      {layer<Family::sum, true>("sum_of_halves_as_nary", "((c1 x1 + c2 x2) - x3) + ... = nary(x1, x2, x3, ...)",
                                {"the values are f16 or bf16", is_half}),
       layer<Family::sum, false>("sum_of_bytes_as_nary", "x1 + (x2 + x3) + ... = nary(x1, x2, x3, ...)",
                                 {"the values are i8, without a scale", is_byte})}};
  return set;
}

size_t combine_narrow(ir::Graph& graph) {
  size_t made = 0;
  const ApplyOptions placed = {.allow = nullptr,
                               .accept = [](const Rule&, const Match& match, const std::vector<ir::Node*>& created) {
                                 return stand_with(*match.root(), created);
                               }};
  for (auto behind = graph.nodes().end(); behind != graph.nodes().begin();) {
    const auto at = std::prev(behind);
    ir::Node* root = *at;
    const bool fired = std::ranges::any_of(
        combining_narrow().rules, [&](const Rule& rule) { return fire(graph, root, rule, placed).has_value(); });
    made += fired;
    behind = fired ? std::prev(behind) : at;
  }
  return made;
}

std::map<const ir::Node*, CombinedLayer> combine(ir::Graph& graph, const FuseOptions& options) {
  const Bindings hints = graph.hints();
  std::map<const ir::Node*, CombinedLayer> layers;
  CombinedLayer made;
  const auto take = [&](const std::vector<const ir::Node*>& nodes) {
    made = {};
    for (const ir::Node* node : nodes) {
      made.nodes.push_back(node->name());
      made.bytes_before += bytes_of({node}, hints);
    }
  };
  const ApplyOptions attend = {.allow = nullptr,
                               .accept = [&](const Rule&, const Match& match, const std::vector<ir::Node*>& created) {
                                 take(written_attention(graph, *match.root()));
                                 return stand_with(*match.root(), created);
                               }};
  const ApplyOptions judge = {.allow = nullptr,
                              .accept = [&](const Rule&, const Match& match, const std::vector<ir::Node*>& created) {
                                const ir::Node& layer = *created.back();
                                const Behind behind = stands_behind(graph, layer, options);
                                const auto nodes = nodes_within(*match.root(), layer);
                                // One node as a layer is of use only as a step.
                                if (behind == Behind::parts || (behind == Behind::none && nodes.size() < 2))
                                  return false;
                                take(nodes);
                                return stand_with(*match.root(), created);
                              }};
  const ApplyOptions judge_bands = {
      .allow = nullptr, .accept = [&](const Rule& rule, const Match& match, const std::vector<ir::Node*>& created) {
        // What the root reads is what is between.
        const ops::Type& between = match.root()->input(0)->type();
        const auto count = static_cast<double>(elements(between.shape).evaluate(hints));
        return count * static_cast<double>(dtype_bytes(between.dtype)) > options.kept_bytes &&
               judge.accept(rule, match, created);
      }};
  // From the back: what a layer takes in stands before it, and is gone when its turn would come.
  for (auto behind = graph.nodes().end(); behind != graph.nodes().begin();) {
    auto at = std::prev(behind);
    ir::Node* root = *at;
    bool fired = false;
    if (const auto created = options.deterministic ? std::nullopt : fire(graph, root, attending().rules[0], attend)) {
      const auto layer = std::ranges::find_if(
          *created, [](const ir::Node* node) { return node->op().name == "scaled_dot_product_attention"; });
      layers.emplace(*layer, std::exchange(made, {}));
      fired = true;
    }
    for (const RuleSet* set : {&combining(options.deterministic), &scaling(), &banding()}) {
      for (const Rule& rule : set->rules) {
        const auto created = fired ? std::nullopt : fire(graph, root, rule, set == &banding() ? judge_bands : judge);
        if (!created) continue;
        layers.emplace(created->back(), std::exchange(made, {}));
        fired = true;
      }
    }
    // A layer stands where its root stood, and is not looked at again.
    behind = fired ? std::prev(behind) : at;
  }
  return layers;
}

}  // namespace hetnn::passes
