// A value that is not kept is computed again from those that are, by copies of the nodes between.
#include "hetnn/passes/recompute.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "hetnn/base/error.h"
#include "hetnn/ir/rewriter.h"
#include "hetnn/ops/demand.h"

namespace hetnn::passes {
namespace {

constexpr double kLeast_us = 1e-3;  // of a closure, so that gains can be divided by it

/// The graph in order, cut behind the node of the result.
class Cut {
 public:
  explicit Cut(const ir::Graph& graph) : graph_(graph), hints_(graph.hints()) {
    for (ir::Node* node : graph.nodes()) {
      places_.emplace(node, nodes_.size());
      nodes_.push_back(node);
    }
    for (size_t k = 0; k < graph.outputs().size() && !end_; ++k) {
      const bool state = std::ranges::any_of(
          graph.mutations, [&](const ir::Mutation& mutation) { return mutation.output == graph.output_names[k]; });
      if (!state && graph.outputs()[k]->producer()) end_ = places_.at(graph.outputs()[k]->producer());
    }
    if (!end_) return;
    for (size_t k = 0; k <= *end_; ++k) {
      for (const ir::Value* value : nodes_[k]->outputs()) {
        const ir::Value* root = root_of(value);
        if (is_free(root) || std::ranges::none_of(value->uses(), [&](const ir::Use& use) { return is_behind(use); }))
          continue;
        kept_[root].push_back(value);
        for (const ir::Use& use : value->uses()) {
          if (!is_behind(use)) continue;
          for (const ir::Value* each : {value, root}) last_[each] = std::max(last_[each], places_.at(use.node));
        }
      }
    }
  }

  const std::vector<ir::Node*>& nodes() const { return nodes_; }
  size_t place(const ir::Node* node) const { return places_.at(node); }
  size_t end() const { return end_.value_or(0); }
  /// The last node behind the cut that reads a value, or one that lies in its bytes; 0: none.
  size_t last_reader(const ir::Value* value) const {
    const auto at = last_.find(value);
    return at == last_.end() ? 0 : at->second;
  }
  bool is_behind(const ir::Use& use) const {
    const auto place = places_.find(use.node);  // none: a copy
    return place != places_.end() && place->second > *end_;
  }
  /// What is kept, by where its bytes lie: those values of it that are read behind the cut.
  const std::map<const ir::Value*, std::vector<const ir::Value*>>& kept() const { return kept_; }
  int64_t bytes(const ir::Value* value) const {
    return elements(value->shape()).evaluate(hints_) * dtype_bytes(value->dtype());
  }
  /// Inputs, constants and outputs of the model are there all the time.
  bool is_free(const ir::Value* root) const {
    return !root->producer() || root->producer()->is_constant() || graph_.is_output(root);
  }
  /// The value in whose bytes a view lies.
  static const ir::Value* root_of(const ir::Value* value) {
    while (value->producer() && value->producer()->op().has(ops::Trait::view) && value->producer()->input(0))
      value = value->producer()->input(0);
    return value;
  }

 private:
  const ir::Graph& graph_;
  const Bindings hints_;
  std::vector<ir::Node*> nodes_;
  std::map<const ir::Node*, size_t> places_;
  std::optional<size_t> end_;
  std::map<const ir::Value*, std::vector<const ir::Value*>> kept_;
  std::map<const ir::Value*, size_t> last_;  // readers behind the cut
};

constexpr size_t kLooked = 32;  // candidates whose memory is looked at, by turns

/// Which of the kept values are computed again, and by copies of which nodes.
struct Choice {
  std::set<const ir::Value*> kept;  // by where their bytes lie
  std::set<size_t> copied;          // nodes, by their places

  bool keeps(const Cut& cut, const ir::Value* value) const {
    const ir::Value* root = Cut::root_of(value);
    return cut.is_free(root) || kept.contains(root);
  }
};

constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

// Of each copied node the place of the first node behind the cut that needs the copy; kNowhere: none does.
std::map<size_t, size_t> places_of_copies(const Cut& cut, const Choice& choice) {
  std::map<size_t, size_t> out;
  for (auto at = choice.copied.rbegin(); at != choice.copied.rend(); ++at) {
    size_t& first = out.emplace(*at, kNowhere).first->second;
    for (const ir::Value* value : cut.nodes()[*at]->outputs()) {
      if (choice.keeps(cut, value)) continue;
      for (const ir::Use& use : value->uses()) {
        if (cut.is_behind(use)) first = std::min(first, cut.place(use.node));
        if (const auto copy = out.find(cut.place(use.node)); copy != out.end()) first = std::min(first, copy->second);
      }
    }
  }
  return out;
}

// How many bytes lie in memory at each place behind the cut.
std::vector<int64_t> bytes_behind(const Cut& cut, const Choice& choice) {
  struct Life {
    size_t from = kNowhere, to = 0;
  };
  std::map<const ir::Value*, Life> lives;
  const auto live = [&](const ir::Value* value, size_t from, size_t to) {
    const ir::Value* root = Cut::root_of(value);
    if (cut.is_free(root)) return;
    Life& life = lives[root];
    life = {std::min(life.from, choice.kept.contains(root) ? cut.end() : from), std::max(life.to, to)};
  };
  for (const auto& [root, values] : cut.kept()) {
    if (choice.kept.contains(root)) live(root, cut.end(), cut.last_reader(root));
  }
  for (const auto& [place, before] : places_of_copies(cut, choice)) {
    if (before == kNowhere) continue;
    const ir::Node& node = *cut.nodes()[place];
    for (const ir::Value* input : node.inputs()) {
      if (input) live(input, before, before);
    }
    for (const ir::Value* output : node.outputs()) {
      if (!choice.keeps(cut, output)) live(output, before, std::max(before, cut.last_reader(output)));
    }
  }
  std::vector<int64_t> out(cut.nodes().size() + 1);
  for (const auto& [root, life] : lives) {
    out[life.from] += cut.bytes(root);
    out[life.to + 1] -= cut.bytes(root);
  }
  for (size_t k = 1; k < out.size(); ++k) out[k] += out[k - 1];
  return out;
}

constexpr double kStride = 0.9;  // of the most bytes so far: those above are what the next step brings down

/// Looks for what to let go. Its way does not depend on the budget: a search for less goes on where one for more ended.
class Search {
 public:
  Search(const Cut& cut, const std::function<double(const ir::Node&)>& time_us) : cut_(cut) {
    for (const auto& [root, values] : cut.kept()) choice_.kept.insert(root);
    for (const ir::Node* node : cut.nodes()) times_us_.push_back(node->is_constant() ? 0 : time_us(*node));
    most_bytes_ = std::ranges::max(bytes_behind(cut, choice_));
  }

  const Choice& choice() const { return choice_; }
  int64_t most_bytes() const { return most_bytes_; }

  /// Lets go what brings memory down most for its time; whether there was anything.
  bool let_go() {
    struct Candidate {
      const ir::Value* root;
      double us;
      std::set<size_t> nodes;
    };
    std::vector<Candidate> candidates;
    for (const ir::Value* root : choice_.kept) {
      Candidate each{root, 0, {}};
      each.us = std::max(closure_us(root, each.nodes), kLeast_us);
      if (each.us < std::numeric_limits<double>::infinity()) candidates.push_back(std::move(each));
    }
    std::ranges::sort(candidates, [&](const Candidate& a, const Candidate& b) {
      const double by_bytes =
          static_cast<double>(cut_.bytes(a.root)) * b.us - static_cast<double>(cut_.bytes(b.root)) * a.us;
      return by_bytes != 0 ? by_bytes > 0 : cut_.place(a.root->producer()) < cut_.place(b.root->producer());
    });
    const double now = excess(bytes_behind(cut_, choice_));
    std::optional<Choice> best;
    double best_gain = 0;
    int64_t best_bytes = 0;
    for (size_t k = 0; k < candidates.size() && (k < kLooked || !best); ++k) {
      const Candidate& each = candidates[k];
      Choice without = choice_;
      without.kept.erase(each.root);
      without.copied.insert(each.nodes.begin(), each.nodes.end());
      const std::vector<int64_t> bytes = bytes_behind(cut_, without);
      const double gain = (now - excess(bytes)) / each.us;
      if (gain <= best_gain) continue;
      best_gain = gain;
      best_bytes = std::ranges::max(bytes);
      best = std::move(without);
    }
    if (!best) return false;
    choice_ = std::move(*best);
    most_bytes_ = best_bytes;
    return true;
  }

 private:
  double excess(const std::vector<int64_t>& bytes_at) const {
    double out = 0;
    for (const int64_t bytes : bytes_at)
      out += std::max(0.0, static_cast<double>(bytes) - kStride * static_cast<double>(most_bytes_));
    return out;
  }

  // The time of what is to be computed again besides what already is, once `root` is not kept; infinite where it
  // cannot.
  double closure_us(const ir::Value* root, std::set<size_t>& nodes) const {
    double out = 0;
    std::vector<const ir::Value*> wanted(cut_.kept().at(root));
    while (!wanted.empty()) {
      const ir::Node* node = wanted.back()->producer();
      wanted.pop_back();
      const size_t place = cut_.place(node);
      if (!nodes.insert(place).second) continue;
      if (ops::acts(node->call())) return std::numeric_limits<double>::infinity();
      if (!choice_.copied.contains(place)) out += times_us_[place];
      for (const ir::Value* input : node->inputs()) {
        if (input && (Cut::root_of(input) == root || !choice_.keeps(cut_, input))) wanted.push_back(input);
      }
    }
    return out;
  }

  const Cut& cut_;
  std::vector<double> times_us_;  // by place
  Choice choice_;
  int64_t most_bytes_ = 0;
};

// Copies the chosen nodes, each ahead of the first that reads it behind the cut, and has those read the copies.
void copy_nodes(ir::Graph& graph, const Cut& cut, const Choice& choice) {
  ir::Rewriter rewriter(graph);
  std::map<const ir::Value*, ir::Value*> again;
  for (const auto& [place, before] : places_of_copies(cut, choice)) {
    if (before == kNowhere) continue;  // of what is kept after all
    const ir::Node& node = *cut.nodes()[place];
    std::vector<ir::Value*> inputs = node.inputs();
    for (ir::Value*& input : inputs) {
      if (const auto copy = again.find(input); copy != again.end()) input = copy->second;
    }
    rewriter.insert_before(cut.nodes()[before]);
    const ir::Node* made =
        rewriter.create(node.op().name, std::move(inputs), node.attrs(), node.name() + ".again", node.loc());
    for (size_t k = 0; k < node.outputs().size(); ++k) {
      ir::Value* value = node.output(k);
      if (choice.keeps(cut, value)) continue;
      again.emplace(value, made->output(k));
      const std::vector<ir::Use> uses(value->uses().begin(), value->uses().end());
      for (const ir::Use& use : uses) {
        if (cut.is_behind(use)) rewriter.set_input(use.node, use.index, made->output(k));
      }
    }
  }
  rewriter.erase_dead();  // what nobody but those read
}

}  // namespace

Kept recompute(ir::Graph& graph, int64_t budget_bytes, const std::function<double(const ir::Node&)>& time_us) {
  const Cut cut(graph);
  Search search(cut, time_us);
  Kept out{.before_bytes = search.most_bytes()};
  for (int64_t least_bytes = out.before_bytes; search.most_bytes() > budget_bytes;) {
    if (!search.let_go())
      throw DoesNotFit(text("checkpoint is ", budget_bytes, " bytes; of ", out.before_bytes, " that gradients need ",
                            least_bytes, " stay in memory at once whatever is computed again. Give at least so many."));
    least_bytes = std::min(least_bytes, search.most_bytes());
  }
  out.after_bytes = search.most_bytes();
  out.nodes = search.choice().copied.size();
  copy_nodes(graph, cut, search.choice());
  return out;
}

}  // namespace hetnn::passes
