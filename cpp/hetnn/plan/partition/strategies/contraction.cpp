// Contraction of parts under a maintained topological order.
#include "hetnn/plan/partition/strategies/contraction.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace hetnn::plan {
namespace {

constexpr int64_t kSpan = int64_t{1} << 62;
/// Parts that move are laid this close together at most, so that a gap lasts for many moves.
constexpr int64_t kStride = int64_t{1} << 30;
/// After making room, gaps are this wide for each part in the neighbourhood.
constexpr int64_t kGap = int64_t{1} << 10;
/// A walk leaves parts of more edges for last.
constexpr int32_t kFewEdges = 16;
/// A search that has read more edges is worth looking up what is remembered of its ends, and remembering.
constexpr int32_t kWorthKnowing = 16;
/// Parts of more edges are giants: it is worth remembering which of them lead to which.
constexpr int32_t kManyEdges = 256;

size_t index(int32_t v) { return static_cast<size_t>(v); }

}  // namespace

ContractionGraph::ContractionGraph(EdgeLists edges, const std::vector<int32_t>& order)
    : neighbours_{edges.in_nodes, edges.out_nodes}, parts_(order.size() + 1) {
  const size_t n = order.size();
  known_paths_.resize(std::bit_ceil(n / 4 + 1));
  for (size_t v = 0; v < n; ++v) {
    Part& g = parts_[v];
    g.parent = static_cast<int32_t>(v);
    g.edges[0] = {edges.in_begin[v], edges.in_begin[v + 1], g.parent, edges.in_begin[v + 1] - edges.in_begin[v]};
    g.edges[1] = {edges.out_begin[v], edges.out_begin[v + 1], g.parent, edges.out_begin[v + 1] - edges.out_begin[v]};
  }
  parts_[n].parent = sentinel();
  const int64_t gap = kSpan / (static_cast<int64_t>(n) + 2);
  for (size_t k = 0; k < n; ++k) {
    Part& here = at(order[k]);
    here.before = k > 0 ? order[k - 1] : sentinel();
    here.after = k + 1 < n ? order[k + 1] : sentinel();
    here.label = gap * static_cast<int64_t>(k + 1);
  }
  at(sentinel()).after = n > 0 ? order.front() : sentinel();
  at(sentinel()).before = n > 0 ? order.back() : sentinel();
}

void ContractionGraph::make_room(int32_t place, int64_t count) {
  // The smallest neighbourhood whose parts get gaps in proportion to their number when they are spread evenly: it
  // takes as many insertions again before one of that size is crowded, so a place moves O(log n) times on average.
  int32_t left = place;
  int32_t right = at(place).after;
  int64_t inside = 0;
  const auto low = [&] { return left == sentinel() ? 0 : at(left).label; };
  const auto high = [&] { return right == sentinel() ? kSpan : at(right).label; };
  while (left != sentinel() || right != sentinel()) {
    const int64_t total = inside + count + 1;
    if ((high() - low()) / total >= kGap * total) break;
    for (int64_t k = inside; k >= 0 && left != sentinel(); --k, ++inside) left = at(left).before;
    for (int64_t k = inside; k >= 0 && right != sentinel(); --k, ++inside) right = at(right).after;
  }
  const int64_t gap = (high() - low()) / (inside + count + 2);
  int64_t label = low() + (place == sentinel() ? gap * count : 0);
  for (int32_t g = at(left).after; g != right; g = at(g).after) {
    at(g).label = label += gap;
    if (g == place) label += gap * count;
  }
}

void ContractionGraph::unlink(int32_t g) {
  at(at(g).before).after = at(g).after;
  at(at(g).after).before = at(g).before;
}

void ContractionGraph::insert_after(int32_t before, int32_t g, int64_t label) {
  const int32_t after = at(before).after;
  at(before).after = g;
  at(after).before = g;
  at(g).before = before;
  at(g).after = after;
  at(g).label = label;
}

template <bool kForward>
void ContractionGraph::begin(int32_t start, int32_t goal) {
  Walk& w = walk<kForward>();
  w.start = start;
  w.goal = goal;
  w.found.clear();
  w.head = 0;
  w.large.clear();
  w.giants.clear();
  w.work = 0;
  static_cast<void>(discover<kForward>(start, -1));
}

ContractionGraph::Path& ContractionGraph::known_path(int32_t from, int32_t to) {
  const auto pair = (static_cast<uint64_t>(from) << 32 | static_cast<uint32_t>(to)) * 0x9E3779B97F4A7C15u;
  return known_paths_[static_cast<size_t>(pair >> 32) & (known_paths_.size() - 1)];
}

template <bool kForward>
bool ContractionGraph::must_meet(int32_t giant) {
  for (const auto& [other, before] : walk<!kForward>().giants) {
    const int32_t from = kForward ? giant : other;
    const int32_t to = kForward ? other : giant;
    if (from == walk<true>().start && to == walk<true>().goal) continue;  // that may be the edge itself
    const Path& known = known_path(from, to);
    if (known.from != from || known.to != to) continue;
    witness_ = from == walk<true>().start ? to : from;
    return true;
  }
  return false;
}

template <bool kForward>
void ContractionGraph::remember(int32_t mine, int32_t theirs) {
  const Walk& w = walk<kForward>();
  const Walk& other = walk<!kForward>();
  if (w.giants.empty() || other.giants.empty()) return;
  const auto met =
      std::find_if(other.found.begin(), other.found.end(), [&](const Find& f) { return f.part == theirs; });
  for (int32_t a = w.found[index(mine)].giant; a >= 0; a = w.giants[index(a)].before) {
    for (int32_t b = met->giant; b >= 0; b = other.giants[index(b)].before) {
      const int32_t from = kForward ? w.giants[index(a)].part : other.giants[index(b)].part;
      const int32_t to = kForward ? other.giants[index(b)].part : w.giants[index(a)].part;
      if (Path& known = known_path(from, to); known.from != from || known.to != to) known = {from, to, -1};
    }
  }
}

template <bool kForward>
bool ContractionGraph::discover(int32_t g, int32_t giant) {
  Walk& w = walk<kForward>();
  const auto find = static_cast<int32_t>(w.found.size());
  const Edges& reach = at(g).edges[kForward ? 1 : 0];
  prefetch(neighbours_[kForward ? 1 : 0].data() + reach.begin);
  const int32_t edges = reach.count;
  if (edges > kManyEdges) {
    w.giants.push_back({g, giant});
    giant = static_cast<int32_t>(w.giants.size()) - 1;
  }
  w.found.push_back({g, giant});
  if (edges <= kFewEdges) return false;
  w.large.push_back({edges, g, find});
  std::push_heap(w.large.begin(), w.large.end());
  return edges > kManyEdges && must_meet<kForward>(g);
}

template <bool kForward>
int32_t ContractionGraph::next_edges() {
  Walk& w = walk<kForward>();
  for (; w.head < w.found.size(); ++w.head) {
    const int32_t edges = at(w.found[w.head].part).edges[kForward ? 1 : 0].count;
    if (edges <= kFewEdges && edges > 0) return edges;
  }
  return w.large.empty() ? -1 : w.large.front().edges;
}

template <bool kForward>
bool ContractionGraph::advance() {
  Walk& w = walk<kForward>();
  if (w.head < w.found.size()) return expand<kForward>(static_cast<int32_t>(w.head++));
  std::pop_heap(w.large.begin(), w.large.end());
  const Large next = w.large.back();
  w.large.pop_back();
  return expand<kForward>(next.find);
}

template <bool kForward>
bool ContractionGraph::expand(int32_t find) {
  constexpr size_t kSide = kForward ? 1 : 0;
  std::vector<int32_t>& neighbours = neighbours_[kSide];
  const auto edges = [&](int32_t member) -> Edges& { return at(member).edges[kSide]; };
  Walk& w = walk<kForward>();
  const auto [g, giant] = w.found[index(find)];
  const int64_t limit = at(w.goal).label;
  const int32_t mine = search_ + (kForward ? 1 : 0);
  const int32_t theirs = search_ + (kForward ? 0 : 1);
  const int32_t scan = ++stamp_;
  int32_t removed = 0;
  int64_t work = 1;
  int32_t previous = edge_member(g, kSide);
  const int32_t last = previous;
  bool met = false;
  const auto prefetch_neighbours = [&](const Edges& reach) __attribute__((always_inline)) {
    for (int32_t k = reach.begin; k < reach.end; ++k) prefetch(&at(neighbours[index(k)]));
  };
  prefetch_neighbours(edges(edges(previous).next_member));
  for (bool more = edges(g).count > 0; more && !met;) {
    const int32_t member = edges(previous).next_member;
    more = member != last;
    const int32_t begin = edges(member).begin;
    int32_t& end = edges(member).end;
    if (more) {
      // Members lie anywhere: asks early for the edges of the next two.
      const Edges& next = edges(edges(member).next_member);
      const Edges& after = edges(next.next_member);
      prefetch(&edges(after.next_member));
      prefetch(neighbours.data() + after.begin);
      prefetch_neighbours(next);
    }
    int32_t kept = begin;
    int32_t edge = begin;
    while (edge < end && !met) {
      const int32_t n = part(neighbours[index(edge++)]);
      Part& there = at(n);
      if (n == g || there.scan == scan) continue;
      there.scan = scan;
      neighbours[index(kept++)] = n;
      if (n == w.goal) {
        met = g != w.start;
        witness_ = g;
        if (met) remember<kForward>(find, n);
        continue;
      }
      if (kForward ? there.label > limit : there.label < limit) continue;
      if (there.seen == mine) continue;
      if (there.seen == theirs) {
        met = true;
        witness_ = n;
        remember<kForward>(find, n);
        continue;
      }
      there.seen = mine;
      met = discover<kForward>(n, giant);
    }
    removed += edge - kept;
    work += edge - begin;
    while (edge < end) neighbours[index(kept++)] = neighbours[index(edge++)];
    end = kept;
    if (kept > begin) {
      previous = member;
    } else {
      edges(previous).next_member = edges(member).next_member;
    }
  }
  edges(g).count -= removed;
  enter_at(g, kSide, previous);
  w.work += work;
  return met;
}

template <bool kForward>
void ContractionGraph::move_beside(int32_t pivot) {
  const Walk& w = walk<kForward>();
  if (w.found.size() == 1) return;
  moved_.clear();
  for (size_t k = 1; k < w.found.size(); ++k) moved_.emplace_back(at(w.found[k].part).label, w.found[k].part);
  std::sort(moved_.begin(), moved_.end());
  for (const auto& [label, g] : moved_) unlink(g);
  // Reached forward: behind the pivot, close to whatever comes next. Reached backward: before it, close to whatever
  // came before. Either way the room beside the pivot shrinks by the parts that moved, not by half.
  int32_t place = kForward ? pivot : at(pivot).before;
  const auto low = [&] { return place == sentinel() ? 0 : at(place).label; };
  const auto high = [&] { return at(place).after == sentinel() ? kSpan : at(at(place).after).label; };
  const auto places = static_cast<int64_t>(moved_.size()) + 1;
  if ((high() - low()) / places < 1) make_room(place, places);
  const int64_t stride = std::min((high() - low()) / places, kStride);
  int64_t label = kForward ? high() - stride * places : low();
  for (const auto& [old_label, g] : moved_) {
    insert_after(place, g, label += stride);
    place = g;
  }
}

void ContractionGraph::unite(int32_t from, int32_t to, int32_t place) {
  // The larger part keeps its name; the pair stands where `place` stood.
  const int32_t kept = at(from).members >= at(to).members ? from : to;
  const int32_t gone = kept == from ? to : from;
  if (place == gone) {
    const int32_t left = at(gone).before;
    const int64_t label = at(gone).label;
    unlink(gone);
    if (left != kept) {
      unlink(kept);
      insert_after(left, kept, label);
    }
  } else {
    unlink(gone);
  }
  at(gone).parent = kept;
  at(kept).members += at(gone).members;
  for (size_t k = 0; k < 2; ++k) {
    if (at(gone).edges[k].count == 0) continue;
    const int32_t other = edge_member(gone, k);
    if (at(kept).edges[k].count == 0) {
      enter_at(kept, k, other);
    } else {
      std::swap(at(edge_member(kept, k)).edges[k].next_member, at(other).edges[k].next_member);
    }
    at(kept).edges[k].count += at(gone).edges[k].count;
  }
}

bool ContractionGraph::try_contract(int32_t from, int32_t to) {
  // The only edge into `to`, or out of `from`, is the one between them.
  if (at(to).edges[0].count == 1 || at(from).edges[1].count == 1) {
    unite(from, to, at(to).edges[0].count == 1 ? from : to);
    return true;
  }
  return search(from, to);
}

bool ContractionGraph::knows_another_path(int32_t from, int32_t to) {
  const Path& known = known_path(from, to);
  if (known.from != from || known.to != to || known.witness < 0) return false;
  const int32_t witness = part(known.witness);
  return witness != from && witness != to;
}

bool ContractionGraph::search(int32_t from, int32_t to) {
  // A search takes two stamps, and one more for each part it expands.
  if (stamp_ > std::numeric_limits<int32_t>::max() / 2) {
    for (Part& g : parts_) g.seen = g.scan = 0;
    stamp_ = 0;
  }
  search_ = stamp_ + 1;
  stamp_ += 2;
  begin<true>(from, to);
  begin<false>(to, from);
  bool asked = false;
  for (;;) {
    const int32_t backward_edges = next_edges<false>();
    if (backward_edges < 0) {
      move_beside<false>(from);
      unite(from, to, from);
      return true;
    }
    const int32_t forward_edges = next_edges<true>();
    if (forward_edges < 0) {
      move_beside<true>(to);
      unite(from, to, to);
      return true;
    }
    // What is remembered lies far away too: most searches end before it would have been read.
    if (!asked && walk<false>().work + walk<true>().work + std::min(backward_edges, forward_edges) > kWorthKnowing) {
      asked = true;
      if (knows_another_path(from, to)) return false;
    }
    const bool backward = walk<false>().work + backward_edges <= walk<true>().work + forward_edges;
    if (backward ? advance<false>() : advance<true>()) {
      if (asked) known_path(from, to) = {from, to, witness_};
      return false;
    }
  }
}

std::vector<int32_t> ContractionGraph::numbering() {
  std::vector<int32_t> number(index(size()), -1);
  std::vector<int32_t> result(number.size());
  int32_t count = 0;
  for (int32_t v = 0; v < size(); ++v) {
    int32_t& k = number[index(part(v))];
    if (k < 0) k = count++;
    result[index(v)] = k;
  }
  return result;
}

}  // namespace hetnn::plan
