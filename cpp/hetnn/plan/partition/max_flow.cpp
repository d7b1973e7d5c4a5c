// Incremental breadth-first search for maximum flow.
#include "hetnn/plan/partition/max_flow.h"

#include <algorithm>
#include <limits>

namespace hetnn::plan {
namespace {
constexpr int32_t kRoot = -1;
constexpr int32_t kNone = -2;
}  // namespace

MaxFlow::MaxFlow(int32_t vertices) : vertices_(vertices), excess_(static_cast<size_t>(vertices), 0) {}

int32_t MaxFlow::add_vertex() {
  excess_.push_back(0);
  return vertices_++;
}

void MaxFlow::add_terminals(int32_t v, int64_t from_source, int64_t to_sink) {
  int64_t& left = excess_[static_cast<size_t>(v)];
  // What is left from before counts as a capacity too.
  if (left > 0) from_source += left;
  if (left < 0) to_sink -= left;
  flow_ += std::min(from_source, to_sink);
  left = from_source - to_sink;
}

void MaxFlow::add_edge(int32_t u, int32_t v, int64_t forward, int64_t backward) {
  edges_.push_back({u, v, forward, backward});
}

void MaxFlow::build() {
  const size_t n = static_cast<size_t>(vertices_);
  first_.assign(n + 1, 0);
  for (const Edge& e : edges_) {
    ++first_[static_cast<size_t>(e.u) + 1];
    ++first_[static_cast<size_t>(e.v) + 1];
  }
  for (size_t v = 0; v < n; ++v) first_[v + 1] += first_[v];
  head_.resize(edges_.size() * 2);
  sister_.resize(edges_.size() * 2);
  capacity_.resize(edges_.size() * 2);
  std::vector<int32_t> fill(first_.begin(), first_.end() - 1);
  for (const Edge& e : edges_) {
    const int32_t a = fill[static_cast<size_t>(e.u)]++;
    const int32_t b = fill[static_cast<size_t>(e.v)]++;
    head_[static_cast<size_t>(a)] = e.v;
    head_[static_cast<size_t>(b)] = e.u;
    sister_[static_cast<size_t>(a)] = b;
    sister_[static_cast<size_t>(b)] = a;
    capacity_[static_cast<size_t>(a)] = e.forward;
    capacity_[static_cast<size_t>(b)] = e.backward;
  }
  edges_ = {};
  // Most paths of these graphs are one edge long: send those before any tree is grown.
  for (size_t u = 0; u < n; ++u) {
    for (int32_t arc = first_[u]; arc < first_[u + 1] && excess_[u] > 0; ++arc) {
      const auto k = static_cast<size_t>(arc);
      const auto v = static_cast<size_t>(head_[k]);
      if (excess_[v] >= 0 || capacity_[k] <= 0) continue;
      const int64_t amount = std::min({excess_[u], -excess_[v], capacity_[k]});
      flow_ += amount;
      excess_[u] -= amount;
      excess_[v] += amount;
      capacity_[k] -= amount;
      capacity_[static_cast<size_t>(sister_[k])] += amount;
    }
  }
  tree_.assign(n, kFree);
  level_.assign(n, 0);
  parent_.assign(n, kNone);
  current_.assign(first_.begin(), first_.end() - 1);
  for (int32_t v = 0; v < vertices_; ++v) {
    const auto k = static_cast<size_t>(v);
    if (excess_[k] == 0) continue;
    const Tree tree = excess_[k] > 0 ? kSource : kSink;
    tree_[k] = tree;
    level_[k] = 1;
    parent_[k] = kRoot;
    active_[tree].push_back(v);
  }
}

void MaxFlow::attach(Tree tree, int32_t v, int32_t arc, int32_t level) {
  const auto k = static_cast<size_t>(v);
  tree_[k] = tree;
  parent_[k] = arc;
  if (level_[k] != level) {
    level_[k] = level;
    current_[k] = first_[k];
  }
}

void MaxFlow::make_orphan(Tree tree, int32_t v) {
  parent_[static_cast<size_t>(v)] = kNone;
  orphans_[tree].push_back(v);
}

void MaxFlow::augment(int32_t bridge, int32_t source_end, int32_t sink_end) {
  int64_t amount = capacity_[static_cast<size_t>(bridge)];
  int32_t source_root = source_end;
  for (int32_t arc; (arc = parent_[static_cast<size_t>(source_root)]) != kRoot;) {
    amount = std::min(amount, capacity_[static_cast<size_t>(sister_[static_cast<size_t>(arc)])]);
    source_root = head_[static_cast<size_t>(arc)];
  }
  int32_t sink_root = sink_end;
  for (int32_t arc; (arc = parent_[static_cast<size_t>(sink_root)]) != kRoot;) {
    amount = std::min(amount, capacity_[static_cast<size_t>(arc)]);
    sink_root = head_[static_cast<size_t>(arc)];
  }
  amount = std::min({amount, excess_[static_cast<size_t>(source_root)], -excess_[static_cast<size_t>(sink_root)]});

  flow_ += amount;
  capacity_[static_cast<size_t>(bridge)] -= amount;
  capacity_[static_cast<size_t>(sister_[static_cast<size_t>(bridge)])] += amount;
  for (int32_t v = source_end; v != source_root;) {
    const int32_t arc = parent_[static_cast<size_t>(v)];
    int64_t& down = capacity_[static_cast<size_t>(sister_[static_cast<size_t>(arc)])];
    down -= amount;
    capacity_[static_cast<size_t>(arc)] += amount;
    if (down == 0) make_orphan(kSource, v);
    v = head_[static_cast<size_t>(arc)];
  }
  excess_[static_cast<size_t>(source_root)] -= amount;
  if (excess_[static_cast<size_t>(source_root)] == 0) make_orphan(kSource, source_root);
  for (int32_t v = sink_end; v != sink_root;) {
    const int32_t arc = parent_[static_cast<size_t>(v)];
    int64_t& up = capacity_[static_cast<size_t>(arc)];
    up -= amount;
    capacity_[static_cast<size_t>(sister_[static_cast<size_t>(arc)])] += amount;
    if (up == 0) make_orphan(kSink, v);
    v = head_[static_cast<size_t>(arc)];
  }
  excess_[static_cast<size_t>(sink_root)] += amount;
  if (excess_[static_cast<size_t>(sink_root)] == 0) make_orphan(kSink, sink_root);
}

void MaxFlow::adopt(Tree tree) {
  // An orphan may adopt another: levels only rise, and a parent that changes its level gives its children up again.
  // Those nearest to the terminal come first, so that this is rare.
  std::vector<int32_t>& orphans = orphans_[tree];
  std::reverse(orphans.begin(), orphans.end());
  const int32_t limit = top_[tree] + (growing_ == tree ? 1 : 0);
  for (size_t k = 0; k < orphans.size(); ++k) {
    const int32_t v = orphans[k];
    const auto i = static_cast<size_t>(v);
    if (tree_[i] != tree || parent_[i] != kNone) continue;
    const int32_t level = level_[i];
    bool adopted = false;
    if (level > 1) {
      for (int32_t& arc = current_[i]; arc < first_[i + 1]; ++arc) {
        const auto u = static_cast<size_t>(head_[static_cast<size_t>(arc)]);
        if (tree_[u] == tree && level_[u] == level - 1 && residual(tree, sister_[static_cast<size_t>(arc)]) > 0) {
          parent_[i] = arc;
          adopted = true;
          break;
        }
      }
    }
    if (adopted) continue;
    // The children hang on v's level, so they must look again; meanwhile v looks for the lowest parent above it.
    int32_t best_arc = kNone;
    int32_t best_level = std::numeric_limits<int32_t>::max();
    for (int32_t arc = first_[i]; arc < first_[i + 1]; ++arc) {
      const int32_t w = head_[static_cast<size_t>(arc)];
      const auto u = static_cast<size_t>(w);
      if (tree_[u] != tree) continue;
      if (parent_[u] >= 0 && parent_[u] == sister_[static_cast<size_t>(arc)]) make_orphan(tree, w);
      if (level_[u] >= level && level_[u] < best_level && residual(tree, sister_[static_cast<size_t>(arc)]) > 0) {
        best_level = level_[u];
        best_arc = arc;
      }
    }
    if (best_arc == kNone || best_level + 1 > limit) {
      tree_[i] = kFree;
      level_[i] = 0;
      continue;
    }
    attach(tree, v, best_arc, best_level + 1);
    if (level_[i] == top_[tree]) active_[tree].push_back(v);
    if (level_[i] == top_[tree] + 1) next_[tree].push_back(v);
  }
  orphans.clear();
}

bool MaxFlow::scan(Tree tree, int32_t v) {
  const auto i = static_cast<size_t>(v);
  const Tree other = tree == kSource ? kSink : kSource;
  for (int32_t arc = first_[i]; arc < first_[i + 1]; ++arc) {
    while (residual(tree, arc) > 0) {
      const int32_t w = head_[static_cast<size_t>(arc)];
      const auto u = static_cast<size_t>(w);
      if (tree_[u] == kFree) {
        attach(tree, w, sister_[static_cast<size_t>(arc)], top_[tree] + 1);
        next_[tree].push_back(w);
        break;
      }
      if (tree_[u] != other) break;
      if (tree == kSource) {
        augment(arc, v, w);
      } else {
        augment(sister_[static_cast<size_t>(arc)], w, v);
      }
      adopt(tree);
      adopt(other);
      if (tree_[i] != tree || level_[i] != top_[tree]) return false;
    }
  }
  return true;
}

void MaxFlow::grow(Tree tree) {
  growing_ = tree;
  std::vector<int32_t>& active = active_[tree];
  for (size_t k = 0; k < active.size(); ++k) {
    const auto v = static_cast<size_t>(active[k]);
    if (tree_[v] == tree && level_[v] == top_[tree]) scan(tree, active[k]);
  }
  growing_ = kFree;
  ++top_[tree];
  active.clear();
  for (const int32_t v : next_[tree]) {
    if (tree_[static_cast<size_t>(v)] == tree && level_[static_cast<size_t>(v)] == top_[tree]) active.push_back(v);
  }
  next_[tree].clear();
}

int64_t MaxFlow::solve() {
  build();
  while (!active_[kSource].empty() && !active_[kSink].empty()) {
    grow(active_[kSource].size() <= active_[kSink].size() ? kSource : kSink);
  }
  exhausted_ = active_[kSource].empty() ? kSource : kSink;
  return flow_;
}

bool MaxFlow::on_source_side(int32_t v) const {
  return exhausted_ == kSource ? tree_[static_cast<size_t>(v)] == kSource : tree_[static_cast<size_t>(v)] != kSink;
}

}  // namespace hetnn::plan
