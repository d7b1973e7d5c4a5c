// Incremental breadth-first search for maximum flow.
#include "hetnn/plan/partition/strategies/max_flow.h"

#include <algorithm>
#include <limits>

namespace hetnn::plan {
namespace {
constexpr int32_t kRoot = -1;
constexpr int32_t kNone = -2;
}  // namespace

MaxFlow::MaxFlow(int32_t vertices) : vertices_(static_cast<size_t>(vertices)) {}

void MaxFlow::reserve(size_t vertices, size_t edges) {
  vertices_.reserve(vertices + 1);
  edges_.reserve(edges);
}

int32_t MaxFlow::add_vertex() {
  vertices_.emplace_back();
  return static_cast<int32_t>(vertices_.size()) - 1;
}

void MaxFlow::add_terminals(int32_t v, int64_t from_source, int64_t to_sink) {
  int64_t& left = at(v).excess;
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
  const auto n = static_cast<int32_t>(vertices_.size());
  vertices_.emplace_back();
  for (const Edge& e : edges_) {
    ++at(e.u + 1).first;
    ++at(e.v + 1).first;
  }
  for (int32_t v = 0; v < n; ++v) {
    at(v + 1).first += at(v).first;
    at(v).current = at(v).first;
  }
  arcs_.resize(edges_.size() * 2);
  for (const Edge& e : edges_) {
    const int32_t a = at(e.u).current++;
    const int32_t b = at(e.v).current++;
    arc(a) = {e.forward, e.v, b};
    arc(b) = {e.backward, e.u, a};
  }
  edges_ = {};
  send_along_edges();
  for (int32_t v = 0; v < n; ++v) {
    Vertex& vertex = at(v);
    vertex.current = vertex.first;
    vertex.parent = kNone;
    if (vertex.excess == 0) continue;
    vertex.tree = vertex.excess > 0 ? kSource : kSink;
    vertex.level = 1;
    vertex.parent = kRoot;
    active_[vertex.tree].push_back(v);
  }
}

/// Most paths of these graphs are one edge long: sends those before any tree is grown.
void MaxFlow::send_along_edges() {
  for (int32_t u = 0; u + 1 < static_cast<int32_t>(vertices_.size()); ++u) {
    int64_t& from = at(u).excess;
    for (int32_t k = at(u).first; k < end_of(u) && from > 0; ++k) {
      Arc& a = arc(k);
      if (a.capacity <= 0) continue;
      int64_t& to = at(a.head).excess;
      if (to >= 0) continue;
      const int64_t amount = std::min({from, -to, a.capacity});
      flow_ += amount;
      from -= amount;
      to += amount;
      a.capacity -= amount;
      arc(a.sister).capacity += amount;
    }
  }
}

void MaxFlow::attach(Tree tree, int32_t v, int32_t arc, int32_t level) {
  Vertex& vertex = at(v);
  vertex.tree = tree;
  vertex.parent = arc;
  if (vertex.level != level) {
    vertex.level = level;
    vertex.current = vertex.first;
  }
}

void MaxFlow::make_orphan(Tree tree, int32_t v) {
  at(v).parent = kNone;
  orphans_[tree].push_back(v);
}

void MaxFlow::augment(int32_t bridge, int32_t source_end, int32_t sink_end) {
  int64_t amount = arc(bridge).capacity;
  int32_t source_root = source_end;
  for (int32_t up; (up = at(source_root).parent) != kRoot; source_root = arc(up).head)
    amount = std::min(amount, arc(arc(up).sister).capacity);
  int32_t sink_root = sink_end;
  for (int32_t up; (up = at(sink_root).parent) != kRoot; sink_root = arc(up).head)
    amount = std::min(amount, arc(up).capacity);
  amount = std::min({amount, at(source_root).excess, -at(sink_root).excess});

  flow_ += amount;
  arc(bridge).capacity -= amount;
  arc(arc(bridge).sister).capacity += amount;
  for (int32_t v = source_end; v != source_root;) {
    Arc& up = arc(at(v).parent);
    int64_t& down = arc(up.sister).capacity;
    down -= amount;
    up.capacity += amount;
    if (down == 0) make_orphan(kSource, v);
    v = up.head;
  }
  at(source_root).excess -= amount;
  if (at(source_root).excess == 0) make_orphan(kSource, source_root);
  for (int32_t v = sink_end; v != sink_root;) {
    Arc& up = arc(at(v).parent);
    up.capacity -= amount;
    arc(up.sister).capacity += amount;
    if (up.capacity == 0) make_orphan(kSink, v);
    v = up.head;
  }
  at(sink_root).excess += amount;
  if (at(sink_root).excess == 0) make_orphan(kSink, sink_root);
}

void MaxFlow::adopt(Tree tree) {
  // An orphan may adopt another: levels only rise, and a parent that changes its level gives its children up again.
  // Those nearest to the terminal come first, so that this is rare.
  std::vector<int32_t>& orphans = orphans_[tree];
  std::reverse(orphans.begin(), orphans.end());
  const int32_t limit = top_[tree] + (growing_ == tree ? 1 : 0);
  for (size_t k = 0; k < orphans.size(); ++k) {
    const int32_t v = orphans[k];
    Vertex& orphan = at(v);
    if (orphan.tree != tree || orphan.parent != kNone) continue;
    const int32_t level = orphan.level;
    const int32_t end = end_of(v);
    bool adopted = false;
    if (level > 1) {
      for (int32_t& a = orphan.current; a < end; ++a) {
        const Vertex& u = at(arc(a).head);
        if (u.tree == tree && u.level == level - 1 && residual(arc(a), tree == kSink) > 0) {
          orphan.parent = a;
          adopted = true;
          break;
        }
      }
    }
    if (adopted) continue;
    // The children hang on v's level, so they must look again; meanwhile v looks for the lowest parent above it.
    int32_t best_arc = kNone;
    int32_t best_level = std::numeric_limits<int32_t>::max();
    for (int32_t a = orphan.first; a < end; ++a) {
      const int32_t w = arc(a).head;
      const Vertex& u = at(w);
      if (u.tree != tree) continue;
      if (u.parent >= 0 && u.parent == arc(a).sister) make_orphan(tree, w);
      if (u.level >= level && u.level < best_level && residual(arc(a), tree == kSink) > 0) {
        best_level = u.level;
        best_arc = a;
      }
    }
    if (best_arc == kNone || best_level + 1 > limit) {
      orphan.tree = kFree;
      orphan.level = 0;
      continue;
    }
    attach(tree, v, best_arc, best_level + 1);
    if (orphan.level == top_[tree]) active_[tree].push_back(v);
    if (orphan.level == top_[tree] + 1) next_[tree].push_back(v);
  }
  orphans.clear();
}

bool MaxFlow::scan(Tree tree, int32_t v) {
  const Vertex& here = at(v);
  const Tree other = tree == kSource ? kSink : kSource;
  const int32_t end = end_of(v);
  for (int32_t k = here.first; k < end; ++k) {
    const Arc& a = arc(k);
    while (residual(a, tree == kSource) > 0) {
      const Tree there = at(a.head).tree;
      if (there == kFree) {
        attach(tree, a.head, a.sister, top_[tree] + 1);
        next_[tree].push_back(a.head);
        break;
      }
      if (there != other) break;
      if (tree == kSource) {
        augment(k, v, a.head);
      } else {
        augment(a.sister, a.head, v);
      }
      adopt(tree);
      adopt(other);
      if (here.tree != tree || here.level != top_[tree]) return false;
    }
  }
  return true;
}

void MaxFlow::grow(Tree tree) {
  growing_ = tree;
  std::vector<int32_t>& active = active_[tree];
  for (size_t k = 0; k < active.size(); ++k) {
    if (at(active[k]).tree == tree && at(active[k]).level == top_[tree]) scan(tree, active[k]);
  }
  growing_ = kFree;
  ++top_[tree];
  active.clear();
  for (const int32_t v : next_[tree]) {
    if (at(v).tree == tree && at(v).level == top_[tree]) active.push_back(v);
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
  return exhausted_ == kSource ? at(v).tree == kSource : at(v).tree != kSink;
}

}  // namespace hetnn::plan
