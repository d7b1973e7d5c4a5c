// Fixpoint driver of rules.
#include "hetnn/passes/apply_rules.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <set>

#include "hetnn/base/error.h"

namespace hetnn::passes {
namespace {

std::mutex& counts_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::map<std::string, size_t>& counts() {
  static std::map<std::string, size_t> map;
  return map;
}

bool is_dead(const ir::Graph& graph, const ir::Node& node) {
  return std::all_of(node.outputs().begin(), node.outputs().end(),
                     [&](const ir::Value* output) { return output->uses().empty() && !graph.is_output(output); });
}

// Erases the candidates that nobody reads, then what only they read, and so on upwards. Returns what is gone.
std::set<const ir::Node*> erase_dead_from(ir::Graph& graph, ir::Rewriter& rewriter, std::vector<ir::Node*> candidates,
                                          ir::Graph::Nodes::iterator* next) {
  std::set<const ir::Node*> erased;
  while (!candidates.empty()) {
    ir::Node* node = candidates.back();
    candidates.pop_back();
    if (erased.contains(node) || !is_dead(graph, *node)) continue;
    for (ir::Value* input : node->inputs()) {
      if (input && input->producer()) candidates.push_back(input->producer());
    }
    erased.insert(node);
    if (next && *next != graph.nodes().end() && **next == node) ++*next;
    rewriter.erase(node);
  }
  return erased;
}

void undo(ir::Rewriter& rewriter, std::vector<ir::Node*>& created) {
  for (ir::Node* node : rewriter.take_created()) created.push_back(node);
  for (size_t k = created.size(); k-- > 0;) rewriter.erase(created[k]);
  created.clear();
}

[[noreturn]] void rethrow_with_place(const Rule& rule, const ir::Node& root) {
  const std::string place = text("rule ", rule.name, " at ", ir::describe(root), ": ");
  try {
    throw;
  } catch (const InvalidModel& error) {
    throw InvalidModel(place + error.what());
  } catch (const Unsupported& error) {
    throw Unsupported(place + error.what());
  } catch (const DoesNotFit& error) {
    throw DoesNotFit(place + error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw InternalError(place + error.what());
  }
}

// The names and module paths of all matched nodes but for `name` itself, and what they were called before.
std::vector<std::string> aliases_of(const Match& match, const std::string& name) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& alias) {
    if (!alias.empty() && alias != name && std::find(out.begin(), out.end(), alias) == out.end()) out.push_back(alias);
  };
  const auto add_all = [&](const ir::Node& node) {
    if (node.is_constant()) return;
    add(node.name());
    add(node.loc().scope);
    for (const std::string& alias : node.aliases) add(alias);
  };
  for (const ir::Node* inner : match.inner_nodes()) add_all(*inner);
  add_all(*match.root());
  return out;
}

}  // namespace

std::optional<std::vector<ir::Node*>> fire(ir::Graph& graph, ir::Node* root, const Rule& rule,
                                           const ApplyOptions& options, double* steps_apart,
                                           ir::Graph::Nodes::iterator* next) {
  ir::Rewriter rewriter(graph);
  std::vector<ir::Node*> created;
  std::vector<std::pair<ir::Value*, ir::Value*>> replaced;
  std::string kept;                  // the name of the node that the result is like, where that is not the root
  std::vector<std::string> aliases;  // of the result
  try {
    const std::optional<Match> found = match(rule, root, graph);
    if (!found || (options.allow && !options.allow(rule, *found))) return std::nullopt;
    const double apart = rule.steps_apart ? rule.steps_apart(*found) : 0;
    if (options.deterministic && apart != 0) return std::nullopt;
    if (steps_apart) *steps_apart = apart;
    rewriter.insert_before(root);
    Build build(rewriter, *found, options.affords);
    ir::Value* result = rule.rewrite(*found, build);
    created = rewriter.take_created();
    if (!result || (options.accept && !options.accept(rule, *found, created))) {
      undo(rewriter, created);
      return std::nullopt;
    }
    replaced = build.replaced();
    replaced.emplace_back(root->output(), result);
    if (const ir::Node* model = build.model_of(result); model && model != root) kept = model->name();
    aliases = aliases_of(*found, kept.empty() ? root->name() : kept);
    for (const auto& [from, to] : replaced) {
      HETNN_ASSERT(from->type() == to->type(), "'", from->name(), "' is ", to_string(from->type()),
                   ", its replacement is ", to_string(to->type()));
    }
  } catch (...) {
    undo(rewriter, created);
    rethrow_with_place(rule, *root);
  }
  // From here on nothing throws.
  std::vector<ir::Node*> candidates = created;
  for (const auto& [from, to] : replaced) {
    candidates.push_back(from->producer());
    rewriter.replace_uses(from, to);
    if (std::find(created.begin(), created.end(), to->producer()) != created.end())
      rewriter.rename(to, std::string(from->name()));
  }
  ir::Value* result = replaced.back().second;
  const bool made = std::find(created.begin(), created.end(), result->producer()) != created.end();
  const std::set<const ir::Node*> erased = erase_dead_from(graph, rewriter, std::move(candidates), next);
  if (made && !kept.empty() && !graph.find_value(kept)) rewriter.rename(result, kept);
  if (made)
    std::erase_if(aliases, [&](const std::string& alias) {
      return result->producer()->is_called(alias) || graph.find_value(alias);
    });
  if (made) result->producer()->aliases = std::move(aliases);
  std::erase_if(created, [&](const ir::Node* node) { return erased.contains(node); });
  if (options.count) {
    const std::lock_guard lock(counts_mutex());
    ++counts()[std::string(rule.name)];
  }
  return created;
}

std::vector<Firing> apply_rules(ir::Graph& graph, const std::vector<const RuleSet*>& sets,
                                const ApplyOptions& options) {
  std::map<std::string_view, std::vector<const Rule*>> by_root;
  for (const RuleSet* set : sets) {
    for (const Rule& rule : set->rules) {
      for (std::string_view name : rule.pattern.ops) by_root[name].push_back(&rule);
    }
  }
  std::vector<Firing> firings;
  const size_t bound = 1000 + 64 * graph.node_count();
  for (bool changed = true; changed;) {
    changed = false;
    const ir::Graph::Nodes nodes = graph.nodes();
    for (auto at = nodes.begin(); at != nodes.end();) {
      ir::Node* root = *at;
      auto next = std::next(at);
      at = next;
      const auto rules = by_root.find(root->op().name);
      if (rules == by_root.end()) continue;
      for (const Rule* rule : rules->second) {
        Firing firing{std::string(rule->name), root->name(), std::string(root->op().name), root->loc()};
        const auto created = fire(graph, root, *rule, options, &firing.steps_apart, &next);
        if (!created) continue;
        firings.push_back(std::move(firing));
        HETNN_ASSERT(firings.size() <= bound, "rules do not settle: ", rule->name, " at '", firings.back().node, "'");
        changed = true;
        // The new nodes stand just before the root's place: look at them next. A root that lives on stands there too.
        at = next;
        for (size_t k = 0; k < created->size() && at != nodes.begin(); ++k) --at;
        break;
      }
    }
  }
  return firings;
}

bool stand_with(const ir::Node& root, const std::vector<ir::Node*>& created) {
  for (ir::Node* node : created) {
    node->device = root.device;
    node->subgraph = root.subgraph;
  }
  return true;
}

std::map<std::string, size_t> firing_counts() {
  const std::lock_guard lock(counts_mutex());
  return counts();
}

}  // namespace hetnn::passes
