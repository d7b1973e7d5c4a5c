// Contraction of groups under a maintained topological order.
#include "hetnn/plan/partition/contraction.h"

#include <algorithm>
#include <limits>

namespace hetnn::plan {
namespace {

constexpr int64_t kSpan = int64_t{1} << 62;
/// Groups that move are laid this close together at most, so that a gap lasts for many moves.
constexpr int64_t kStride = int64_t{1} << 16;

size_t index(int32_t v) { return static_cast<size_t>(v); }

}  // namespace

ContractionGraph::ContractionGraph(EdgeLists edges, const std::vector<int32_t>& order) : edges_(edges) {
  const size_t n = order.size();
  parent_.resize(n);
  next_member_.resize(n);
  for (size_t v = 0; v < n; ++v) parent_[v] = next_member_[v] = static_cast<int32_t>(v);
  member_count_.assign(n, 1);
  seen_forward_.assign(n, 0);
  seen_backward_.assign(n, 0);
  label_.assign(n + 1, 0);
  before_.assign(n + 1, 0);
  after_.assign(n + 1, 0);
  int32_t last = static_cast<int32_t>(n);
  for (const int32_t v : order) {
    after_[index(last)] = v;
    before_[index(v)] = last;
    last = v;
  }
  after_[index(last)] = static_cast<int32_t>(n);
  before_[n] = last;
  renumber();
}

int32_t ContractionGraph::group(int32_t v) {
  while (parent_[index(v)] != v) {
    parent_[index(v)] = parent_[index(parent_[index(v)])];
    v = parent_[index(v)];
  }
  return v;
}

void ContractionGraph::renumber() {
  const auto sentinel = static_cast<int32_t>(parent_.size());
  int64_t count = 0;
  for (int32_t g = after_[index(sentinel)]; g != sentinel; g = after_[index(g)]) ++count;
  const int64_t gap = kSpan / (count + 2);
  int64_t label = 0;
  for (int32_t g = after_[index(sentinel)]; g != sentinel; g = after_[index(g)]) label_[index(g)] = label += gap;
}

void ContractionGraph::unlink(int32_t g) {
  after_[index(before_[index(g)])] = after_[index(g)];
  before_[index(after_[index(g)])] = before_[index(g)];
}

void ContractionGraph::insert_after(int32_t before, int32_t g, int64_t label) {
  const int32_t after = after_[index(before)];
  after_[index(before)] = g;
  before_[index(g)] = before;
  after_[index(g)] = after;
  before_[index(after)] = g;
  label_[index(g)] = label;
}

void ContractionGraph::enter_member(Walk& walk, int32_t member) {
  walk.member = member;
  walk.edge = walk.forward ? edges_.out_begin[index(member)] : edges_.in_begin[index(member)];
}

void ContractionGraph::begin(Walk& walk, bool forward, int32_t start, int32_t goal) {
  walk.forward = forward;
  walk.start = start;
  walk.goal = goal;
  walk.found.assign(1, start);
  walk.head = 0;
  enter_member(walk, start);
}

ContractionGraph::Step ContractionGraph::step(Walk& walk) {
  const std::vector<int32_t>& ends = walk.forward ? edges_.out_begin : edges_.in_begin;
  const int32_t here = walk.found[walk.head];
  if (walk.edge == ends[index(walk.member) + 1]) {
    const int32_t next = next_member_[index(walk.member)];
    if (next != here) {
      enter_member(walk, next);
      return Step::more;
    }
    if (++walk.head == walk.found.size()) return Step::ended;
    enter_member(walk, walk.found[walk.head]);
    return Step::more;
  }
  const int32_t neighbour =
      group((walk.forward ? edges_.out_nodes : edges_.in_nodes)[static_cast<size_t>(walk.edge++)]);
  if (neighbour == here) return Step::more;
  if (neighbour == walk.goal) return here == walk.start ? Step::more : Step::met;
  const int64_t label = label_[index(neighbour)];
  if (walk.forward ? label > label_[index(walk.goal)] : label < label_[index(walk.goal)]) return Step::more;
  std::vector<int32_t>& seen = walk.forward ? seen_forward_ : seen_backward_;
  if (seen[index(neighbour)] == stamp_) return Step::more;
  if ((walk.forward ? seen_backward_ : seen_forward_)[index(neighbour)] == stamp_) return Step::met;
  seen[index(neighbour)] = stamp_;
  walk.found.push_back(neighbour);
  return Step::more;
}

void ContractionGraph::move_beside(const Walk& walk, int32_t pivot) {
  std::vector<int32_t> moved(walk.found.begin() + 1, walk.found.end());
  if (moved.empty()) return;
  std::sort(moved.begin(), moved.end(), [&](int32_t a, int32_t b) { return label_[index(a)] < label_[index(b)]; });
  for (const int32_t g : moved) unlink(g);
  // Reached forward: behind the pivot, close to whatever comes next. Reached backward: before it, close to whatever
  // came before. Either way the room beside the pivot shrinks by the groups that moved, not by half.
  const auto sentinel = static_cast<int32_t>(parent_.size());
  int32_t at = walk.forward ? pivot : before_[index(pivot)];
  const auto low = [&] { return at == sentinel ? 0 : label_[index(at)]; };
  const auto high = [&] { return after_[index(at)] == sentinel ? kSpan : label_[index(after_[index(at)])]; };
  const auto places = static_cast<int64_t>(moved.size()) + 1;
  if ((high() - low()) / places < 1) renumber();
  const int64_t stride = std::min((high() - low()) / places, kStride);
  int64_t label = walk.forward ? high() - stride * places : low();
  for (const int32_t g : moved) {
    insert_after(at, g, label += stride);
    at = g;
  }
}

bool ContractionGraph::try_contract(int32_t from, int32_t to) {
  if (stamp_ == std::numeric_limits<int32_t>::max()) {
    std::fill(seen_forward_.begin(), seen_forward_.end(), 0);
    std::fill(seen_backward_.begin(), seen_backward_.end(), 0);
    stamp_ = 0;
  }
  ++stamp_;
  begin(forward_, true, from, to);
  begin(backward_, false, to, from);
  int32_t place = from;
  for (;;) {
    Step s = step(backward_);
    if (s == Step::met) return false;
    if (s == Step::ended) {
      move_beside(backward_, from);
      break;
    }
    s = step(forward_);
    if (s == Step::met) return false;
    if (s == Step::ended) {
      move_beside(forward_, to);
      place = to;
      break;
    }
  }
  // The larger group keeps its name; the pair stands where `place` stood.
  const int32_t kept = member_count_[index(from)] >= member_count_[index(to)] ? from : to;
  const int32_t gone = kept == from ? to : from;
  if (place == gone) {
    const int32_t left = before_[index(gone)];
    const int64_t label = label_[index(gone)];
    unlink(gone);
    if (left != kept) {
      unlink(kept);
      insert_after(left, kept, label);
    }
  } else {
    unlink(gone);
  }
  parent_[index(gone)] = kept;
  member_count_[index(kept)] += member_count_[index(gone)];
  std::swap(next_member_[index(kept)], next_member_[index(gone)]);
  return true;
}

std::vector<int32_t> ContractionGraph::numbering() {
  const auto sentinel = static_cast<int32_t>(parent_.size());
  std::vector<int32_t> number(parent_.size(), 0);
  int32_t count = 0;
  for (int32_t g = after_[index(sentinel)]; g != sentinel; g = after_[index(g)]) number[index(g)] = count++;
  std::vector<int32_t> result(parent_.size());
  for (size_t v = 0; v < result.size(); ++v) result[v] = number[index(group(static_cast<int32_t>(v)))];
  return result;
}

}  // namespace hetnn::plan
