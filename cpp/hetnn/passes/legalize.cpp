// The search for the cheapest legal expansion of each node.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "hetnn/base/error.h"
#include "hetnn/base/interrupt.h"
#include "hetnn/base/nearest_names.h"
#include "hetnn/base/progress.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/passes/apply_rules.h"
#include "hetnn/passes/canonical/rules.h"
#include "hetnn/passes/fold_constants.h"
#include "hetnn/passes/isolate.h"
#include "hetnn/passes/legal/bounds.h"
#include "hetnn/passes/legal/rules.h"
#include "hetnn/passes/legalizer.h"
#include "hetnn/passes/value_ranges.h"

namespace hetnn::passes {
namespace {

// How one node becomes legal: natively (no rule), or by a rule whose right side's nodes (constants left out, in the
// order of creation) become legal as `children` say.
struct Expansion {
  double cost_us = 0;
  const Rule* rule = nullptr;
  std::vector<Expansion> children;
  double within = std::numeric_limits<double>::infinity();  // the rule holds while no element read is larger
};

struct Candidate {
  const Rule* rule;
  double cost_us;
};

bool is_disabled(const LegalizeOptions& options, const Rule& rule) {
  return std::find(options.disabled_rules.begin(), options.disabled_rules.end(), rule.name) !=
         options.disabled_rules.end();
}

bool reads_constants_only(const ir::Node& node) {
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    if (node.input(k) && !node.constant_input(k)) return false;
  }
  return !node.inputs().empty();
}

bool is_empty(const ir::Node& node) {
  const Shape& shape = node.output()->shape();
  return std::find(shape.begin(), shape.end(), Dim(0)) != shape.end();
}

const legal::RangedRule* range_of(const Rule& rule) {
  const auto& rules = legal::ranged_rules();
  const auto at =
      std::find_if(rules.begin(), rules.end(), [&](const auto& ranged) { return ranged.rule == rule.name; });
  return at == rules.end() ? nullptr : &*at;
}

// Of each input of a node the largest magnitude that an element may have.
using Largest = std::vector<double>;

Largest largest_read(const ir::Node& node, const Ranges& ranges) {
  Largest out;
  for (const ir::Value* input : node.inputs()) out.push_back(input ? ranges.at(input->name()).largest() : 0);
  return out;
}

double most(const Largest& largest) { return largest.empty() ? 0 : *std::max_element(largest.begin(), largest.end()); }

// The ranges in a graph that `isolate` made of a node that reads so much.
Ranges ranges_alone(const ir::Graph& alone, const ir::Node& node, const Largest& largest) {
  Magnitudes within;
  size_t next = 0;
  std::set<const ir::Value*> seen;
  for (size_t k = 0; k < node.inputs().size(); ++k) {
    if (!node.input(k) || node.constant_input(k) || !seen.insert(node.input(k)).second) continue;
    within.emplace(alone.inputs()[next++]->name(), largest[k]);
  }
  return value_ranges(alone, within);
}

class Search {
 public:
  Search(const Oracle& oracle, const LegalizeOptions& options, const std::vector<Symbol>& symbols)
      : oracle_(oracle), options_(options), symbols_(symbols) {
    for (const RuleSet* set : legal::rule_sets()) {
      for (const Rule& rule : set->rules) {
        if (is_disabled(options, rule)) continue;
        for (std::string_view name : rule.pattern.ops) by_root_[name].push_back(&rule);
      }
    }
  }

  /// What was found for a node: the cheapest expansion, and every rule at the node that works and is not dearer than
  /// two others, with its price.
  struct Found {
    std::optional<Expansion> best;
    std::vector<Candidate> candidates;
    /// Where nothing works, the cheapest of a rule that would if what the node reads were known to be small enough.
    std::optional<Expansion> if_smaller;
  };

  /// For an unsupported node, and what it reads. A node like one before is not searched again.
  const Found& run(const ir::Node& node, const Largest& largest) {
    std::vector<Asked>& asked = asked_[node.op().name];
    const auto same = [&](const Asked& other) { return other.is_like(node, largest); };
    const auto known = std::find_if(asked.begin(), asked.end(), same);
    if (known != asked.end()) return *known->found;
    trials_ = 0;
    path_.clear();
    auto found = std::make_unique<Found>();
    // No form of the node works where nothing gives its type.
    if (oracle_.gives && !oracle_.gives(node.output()->dtype()))
      return *asked.emplace_back(node, largest, std::move(found)).found;
    found->best = expand(node, largest, options_.max_depth, kNoLimit, &found->candidates);
    if (!found->best) {
      trials_ = 0;
      suppose_small_ = true;
      found->if_smaller = expand(node, largest, options_.max_depth, kNoLimit, nullptr);
      suppose_small_ = false;
      if (found->if_smaller && !range_of(*found->if_smaller->rule)) found->if_smaller.reset();
    }
    return *asked.emplace_back(node, largest, std::move(found)).found;
  }

 private:
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  // A node that was searched. Constants are the same where they lie at one place, which the copies keep.
  struct Asked {
    Asked(const ir::Node& node, const Largest& read, std::unique_ptr<Found> result)
        : attrs(node.attrs()), largest(read), found(std::move(result)) {
      for (size_t k = 0; k < node.inputs().size(); ++k) {
        const ir::Value* input = node.input(k);
        types.push_back(input ? std::optional(input->type()) : std::nullopt);
        constants.push_back(node.constant_input(k) ? *node.constant_input(k) : Tensor());
      }
    }
    bool is_like(const ir::Node& node, const Largest& read) const {
      if (largest != read || types.size() != node.inputs().size() || !ops::same(attrs, node.attrs())) return false;
      for (size_t k = 0; k < types.size(); ++k) {
        const ir::Value* input = node.input(k);
        const Tensor* constant = node.constant_input(k);
        if (types[k].has_value() != (input != nullptr) || (input && *types[k] != input->type())) return false;
        if (constants[k].data() != (constant ? constant->data() : nullptr)) return false;
      }
      return true;
    }

    ops::Attrs attrs;
    std::vector<std::optional<ops::Type>> types;
    std::vector<Tensor> constants;
    Largest largest;
    std::unique_ptr<Found> found;
  };

  // Forms that take `limit_us` or longer are of no use.
  std::optional<Expansion> expand(const ir::Node& node, const Largest& largest, int depth, double limit_us,
                                  std::vector<Candidate>* candidates) {
    const auto rules = by_root_.find(node.op().name);
    if (depth == 0 || rules == by_root_.end()) return std::nullopt;
    std::optional<Expansion> found;
    double second_us = kNoLimit;  // of the candidates, which are told with the next best
    const size_t replaced_before = replaced_.size();
    for (const Rule* rule : rules->second) {
      if (std::find(path_.begin(), path_.end(), rule) != path_.end() || trials_ >= options_.max_trials) continue;
      if (std::find(replaced_.begin(), replaced_.end(), rule->name) != replaced_.end()) continue;
      const legal::RangedRule* ranged = range_of(*rule);
      const bool replaces = ranged && !ranged->instead_of.empty();
      // What a ranged rule replaces depends on whether it works, not on its price.
      const double limit = replaces ? kNoLimit : candidates ? second_us : found ? found->cost_us : limit_us;
      std::optional<Expansion> trial = try_rule(node, largest, *rule, depth, limit);
      if (!trial) continue;
      if (found) second_us = std::min(second_us, std::max(trial->cost_us, found->cost_us));
      if (replaces) replaced_.insert(replaced_.end(), ranged->instead_of.begin(), ranged->instead_of.end());
      if (candidates) candidates->push_back({rule, trial->cost_us});
      if (!found || trial->cost_us < found->cost_us) found = std::move(trial);
    }
    replaced_.resize(replaced_before);
    return found;
  }

  std::optional<Expansion> try_rule(const ir::Node& node, const Largest& largest, const Rule& rule, int depth,
                                    double limit_us) {
    ir::Graph scratch = isolate(node, symbols_);
    ir::Node* root = scratch.outputs().front()->producer();
    double within = kNoLimit;
    if (const legal::RangedRule* ranged = range_of(rule)) {
      const std::optional<Match> found = match(rule, root, scratch);
      if (!found) return std::nullopt;
      within = ranged->within(*found);
      const bool suppose = suppose_small_ && path_.empty() && within > 0;
      if (!suppose && !(most(largest) <= within)) return std::nullopt;
    }
    ApplyOptions quiet;
    quiet.count = false;
    quiet.affords = [&](int64_t bytes) {
      return bytes <= options_.max_constant_bytes && (!oracle_.least_us || oracle_.least_us(bytes) < limit_us);
    };
    const auto created = fire(scratch, root, rule, quiet);
    if (!created) return std::nullopt;
    ++trials_;
    path_.push_back(&rule);
    std::optional<Expansion> out = Expansion{.cost_us = 0, .rule = &rule, .children = {}, .within = within};
    std::optional<Ranges> ranges;  // of the right side, once a node of it asks
    const auto best = [&](const ir::Node& made, double limit) -> std::optional<Expansion> {
      if (reads_constants_only(made)) return Expansion{};
      if (oracle_.supports(made)) return Expansion{.cost_us = oracle_.time_us(made), .rule = nullptr, .children = {}};
      if (!ranges) ranges = ranges_alone(scratch, node, supposed(largest, within));
      return expand(made, largest_read(made, *ranges), depth - 1, limit, nullptr);
    };
    for (const ir::Node* made : *created) {
      if (made->is_constant()) continue;
      std::optional<Expansion> child = best(*made, limit_us - out->cost_us);
      if (!child || out->cost_us + child->cost_us >= limit_us) {
        out.reset();
        break;
      }
      out->cost_us += child->cost_us;
      out->children.push_back(std::move(*child));
    }
    path_.pop_back();
    return out;
  }

  Largest supposed(Largest largest, double within) const {
    if (suppose_small_) {
      for (double& one : largest) one = std::min(one, within);
    }
    return largest;
  }

  const Oracle& oracle_;
  const LegalizeOptions& options_;
  const std::vector<Symbol>& symbols_;
  std::map<std::string_view, std::vector<const Rule*>> by_root_;
  std::map<std::string_view, std::vector<Asked>> asked_;
  std::vector<const Rule*> path_;
  std::vector<std::string_view> replaced_;  // rules that another does better where the search is
  int trials_ = 0;
  bool suppose_small_ = false;
};

// Repeats on the graph what the search found on the node alone.
void replay(ir::Graph& graph, ir::Node* node, const Expansion& expansion, std::vector<std::string_view>& used) {
  if (!expansion.rule) return;
  if (std::find(used.begin(), used.end(), expansion.rule->name) == used.end()) used.push_back(expansion.rule->name);
  const auto created = fire(graph, node, *expansion.rule);
  HETNN_ASSERT(created, "rule ", expansion.rule->name, " matched ", ir::describe(*node), " alone but not in place");
  size_t child = 0;
  for (ir::Node* made : *created) {
    if (made->is_constant()) continue;
    HETNN_ASSERT(child < expansion.children.size());
    replay(graph, made, expansion.children[child++], used);
  }
}

std::string explain(const ir::Node& node, const Expansion& best, std::vector<Candidate> candidates, double largest) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost_us < b.cost_us; });
  std::string out =
      text("the device has no such ", node.op().name, "; ", best.rule->name, " costs ", best.cost_us, " us");
  if (range_of(*best.rule)) out += text(" and holds since no |x| is above ", largest);
  for (const Candidate& other : candidates) {
    if (other.rule != best.rule) return out + text(", the next best, ", other.rule->name, ", ", other.cost_us, " us");
  }
  return out + ", the only legal form";
}

// The rules that fold neighbours together after every node has been expanded.
std::vector<const RuleSet*> combining_rule_sets() {
  return {&canonical::weights(), &canonical::movement(), &legal::merging()};
}

// A fold by the names and types of what it replaces: by these it is priced.
std::string fold_text(const Rule& rule, const Match& m) {
  std::string out(rule.name);
  std::vector<const ir::Node*> nodes = {m.root()};
  for (const ir::Node* inner : m.inner_nodes()) nodes.push_back(inner);
  for (const ir::Node* node : nodes) {
    out += text("\n", ir::describe(*node));
    for (const ir::Value* input : node->inputs()) {
      if (input) out += text(", ", input->name(), ": ", to_string(input->type()));
    }
  }
  return out;
}

// Folds what the expansions left beside convolutions into them, as long as that stays legal and is not dearer.
void combine(ir::Graph& graph, const Oracle& oracle, const LegalizeOptions& options, std::set<std::string>& dearer) {
  ApplyOptions apply;
  apply.allow = [&](const Rule& rule, const Match& m) {
    return !is_disabled(options, rule) && !dearer.contains(fold_text(rule, m));
  };
  const auto is_cheaper = [&](const Match& m, const std::vector<ir::Node*>& created) {
    double before = 0, after = 0;
    std::vector<const ir::Node*> gone = {m.root()};
    for (const ir::Node* inner : m.inner_nodes()) gone.push_back(inner);
    for (const ir::Node* node : gone) {
      if (!oracle.supports(*node)) return false;
      before += oracle.time_us(*node);
    }
    for (const ir::Node* node : created) {
      if (node->is_constant()) continue;
      if (!oracle.supports(*node)) return false;
      after += oracle.time_us(*node);
    }
    return after < before;
  };
  apply.accept = [&](const Rule& rule, const Match& m, const std::vector<ir::Node*>& created) {
    const bool cheaper = is_cheaper(m, created);
    if (!cheaper) dearer.insert(fold_text(rule, m));
    return cheaper;
  };
  apply_rules(graph, combining_rule_sets(), apply);
}

std::map<std::string, Largest> all_read(const ir::Graph& graph, const Magnitudes& inputs_within) {
  const Ranges ranges = value_ranges(graph, inputs_within);
  std::map<std::string, Largest> out;
  for (const ir::Node* node : graph.nodes()) out[node->name()] = largest_read(*node, ranges);
  return out;
}

}  // namespace

void check_disabled_rules(const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::vector<std::string_view> known;
  for (const auto& sets : {legal::rule_sets(), combining_rule_sets()}) {
    for (const RuleSet* set : sets) {
      for (const Rule& rule : set->rules) known.push_back(rule.name);
    }
  }
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string nearest;
    for (std::string_view other : nearest_names(name, known, 3)) nearest += text(nearest.empty() ? "" : ", ", other);
    throw InvalidModel(text("disabled_rules: legalization has no rule '", name, "'; the nearest names are ", nearest,
                            ". docs/rules.md lists all of them."));
  }
}

Oracle accelerators(const target::Target& target, const Bindings& bindings) {
  Oracle oracle;
  oracle.supports = [&target](const ir::Node& node) {
    return std::any_of(target.devices.begin() + 1, target.devices.end(),
                       [&](const auto& device) { return device->support(node).ok(); });
  };
  oracle.gives = [&target](DType dtype) {
    return std::any_of(target.devices.begin() + 1, target.devices.end(),
                       [&](const auto& device) { return device->gives(dtype); });
  };
  oracle.time_us = [&target, bindings](const ir::Node& node) {
    double best = std::numeric_limits<double>::infinity();
    for (size_t k = 1; k < target.devices.size(); ++k) {
      if (target.devices[k]->support(node).ok()) best = std::min(best, target.devices[k]->time_us(node, bindings));
    }
    return best;
  };
  oracle.least_us = [&target](int64_t bytes) {
    double least = std::numeric_limits<double>::infinity();
    for (size_t k = 1; k < target.devices.size(); ++k) least = std::min(least, target.devices[k]->least_us(bytes));
    return least;
  };
  return oracle;
}

struct Legalizer::State {
  State(const Oracle& of, const LegalizeOptions& how, const std::vector<Symbol>& symbols)
      : oracle(of), options(how), search(of, how, symbols) {}

  const Oracle& oracle;
  const LegalizeOptions& options;
  Search search;
  std::map<std::string, Largest> largest_read;
  std::map<std::string, OutOfRange> out_of_range;  // by node
  std::set<std::string> dearer;                    // folds, by fold_text
};

Legalizer::Legalizer(const Oracle& oracle, const LegalizeOptions& options, const std::vector<Symbol>& symbols) {
  check_disabled_rules(options.disabled_rules);
  state_ = std::make_unique<State>(oracle, options, symbols);
}

Legalizer::~Legalizer() = default;

std::vector<report::RewriteRow> Legalizer::run(ir::Graph& graph) {
  const LegalizeOptions& options = state_->options;
  std::vector<report::RewriteRow> rewrites;
  const ir::Graph::Nodes nodes = graph.nodes();
  const size_t count = graph.node_count();
  size_t seen = 0;
  for (auto at = nodes.begin(); at != nodes.end();) {
    ir::Node* node = *at;
    ++at;
    check_interrupt();
    announce_parts(seen++, count);
    if (node->is_constant() || is_empty(*node) || options.excluded_nodes.contains(node->name())) continue;
    if (state_->oracle.supports(*node)) continue;
    if (state_->largest_read.empty()) state_->largest_read = all_read(graph, options.inputs_within);
    const Largest& largest = state_->largest_read.at(node->name());
    const auto& [expansion, candidates, if_smaller] = state_->search.run(*node, largest);
    if (!expansion) {
      if (if_smaller) {
        state_->out_of_range[node->name()] = {node->name(), std::string(if_smaller->rule->name), if_smaller->within,
                                              most(largest)};
      }
      continue;
    }
    report::RewriteRow rewrite{.rule = std::string(expansion->rule->name),
                               .node = node->name(),
                               .op = std::string(node->op().name),
                               .form = {},
                               .why = explain(*node, *expansion, candidates, most(largest)),
                               .predicted_us_after = expansion->cost_us};
    std::vector<std::string_view> used;
    replay(graph, node, *expansion, used);
    for (std::string_view name : used) rewrite.form += (rewrite.form.empty() ? "" : " + ") + std::string(name);
    rewrites.push_back(std::move(rewrite));
  }
  if (!rewrites.empty()) {
    fold_constants(graph, {.outputs = false});
    combine(graph, state_->oracle, options, state_->dearer);
    ir::Rewriter(graph).erase_dead();
  }
  if (graph.stage < ir::Stage::legal) graph.stage = ir::Stage::legal;
  return rewrites;
}

std::vector<OutOfRange> Legalizer::out_of_range() const {
  std::vector<OutOfRange> out;
  for (const auto& [node, row] : state_->out_of_range) out.push_back(row);
  return out;
}

std::vector<report::RewriteRow> legalize(ir::Graph& graph, const Oracle& oracle, const LegalizeOptions& options) {
  return Legalizer(oracle, options, graph.symbols).run(graph);
}

}  // namespace hetnn::passes
