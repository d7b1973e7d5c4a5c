// Plain definitions that the partitioner is compared with.
#include "reference_plans.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace hetnn::plan::reference {
namespace {

using Matrix = std::vector<std::vector<uint8_t>>;

size_t index(int32_t v) { return static_cast<size_t>(v); }

std::vector<int32_t> inputs_of(const Problem& p, int32_t v) {
  std::set<int32_t> unique(p.inputs.begin() + p.input_begin[index(v)], p.inputs.begin() + p.input_begin[index(v) + 1]);
  return {unique.begin(), unique.end()};
}

/// Nodes sorted so that inputs come first; nodes are assumed to be listed that way already.
void require_sorted(const Problem& p) {
  for (int32_t v = 0; v < p.size(); ++v) {
    for (const int32_t u : inputs_of(p, v)) {
      if (u >= v) std::abort();
    }
  }
}

/// The length of the shortest sequence of runs that starts with `first`, as launch cost: earliest run of every node.
double launches(const Problem& p, const std::vector<int32_t>& colour, int32_t first) {
  std::vector<int32_t> run(colour.size());
  std::set<int32_t> used;
  for (int32_t v = 0; v < p.size(); ++v) {
    run[index(v)] = colour[index(v)] == first ? 0 : 1;
    for (const int32_t u : inputs_of(p, v))
      run[index(v)] = std::max(run[index(v)], run[index(u)] + (colour[index(u)] != colour[index(v)] ? 1 : 0));
    used.insert(run[index(v)]);
  }
  double total = 0;
  for (const int32_t r : used) total += p.devices[index((r % 2 == 0) == (first == 0) ? 0 : 1)].launch_us;
  return total;
}

/// Parts as sets; reachability in the graph of parts by a fresh search.
class Parts {
 public:
  explicit Parts(const Problem& p) : of_(index(p.size())) {
    std::iota(of_.begin(), of_.end(), 0);
    for (int32_t v = 0; v < p.size(); ++v) inputs_.push_back(inputs_of(p, v));
  }

  int32_t of(int32_t v) const { return of_[index(v)]; }
  const std::vector<int32_t>& all() const { return of_; }

  /// Whether a path leads from part a to part b over at least one other part.
  bool other_path(int32_t a, int32_t b) const {
    std::set<int32_t> seen;
    std::vector<int32_t> todo;
    const auto visit_from = [&](int32_t g, bool first) {
      for (int32_t v = 0; v < static_cast<int32_t>(of_.size()); ++v) {
        for (const int32_t u : inputs_[index(v)]) {
          if (of(u) != g || of(v) == g) continue;
          if (of(v) == b) {
            if (!first) return true;
            continue;
          }
          if (seen.insert(of(v)).second) todo.push_back(of(v));
        }
      }
      return false;
    };
    if (visit_from(a, true)) return true;
    while (!todo.empty()) {
      const int32_t g = todo.back();
      todo.pop_back();
      if (visit_from(g, false)) return true;
    }
    return false;
  }

  void merge(int32_t a, int32_t b) {
    for (int32_t& g : of_) {
      if (g == b) g = a;
    }
  }

 private:
  std::vector<int32_t> of_;
  std::vector<std::vector<int32_t>> inputs_;
};

/// The longest path to each node in the graph of parts.
std::vector<int32_t> depths_of(const Parts& parts, const std::vector<std::vector<int32_t>>& inputs) {
  std::vector<int32_t> of_part(inputs.size(), 0);
  for (bool deeper = true; deeper;) {
    deeper = false;
    for (size_t v = 0; v < inputs.size(); ++v) {
      const int32_t part = parts.of(static_cast<int32_t>(v));
      for (const int32_t u : inputs[v]) {
        if (parts.of(u) == part || of_part[index(parts.of(u))] < of_part[index(part)]) continue;
        of_part[index(part)] = of_part[index(parts.of(u))] + 1;
        deeper = true;
      }
    }
  }
  std::vector<int32_t> depth(inputs.size());
  for (size_t v = 0; v < inputs.size(); ++v) depth[v] = of_part[index(parts.of(static_cast<int32_t>(v)))];
  return depth;
}

}  // namespace

double brute_force_cost_us(const Problem& p) {
  require_sorted(p);
  double best = std::numeric_limits<double>::infinity();
  for (uint64_t bits = 0; bits < (uint64_t{1} << p.size()); ++bits) {
    std::vector<int32_t> colour(index(p.size()));
    double cost = 0;
    for (int32_t v = 0; v < p.size(); ++v) {
      colour[index(v)] = static_cast<int32_t>(bits >> v & 1);
      cost += p.time_of(v, colour[index(v)]);
    }
    if (!(cost < best)) continue;
    std::set<std::pair<int32_t, int32_t>> moved;
    for (int32_t v = 0; v < p.size(); ++v) {
      for (const int32_t u : inputs_of(p, v)) {
        if (colour[index(u)] != colour[index(v)] && moved.insert({u, colour[index(v)]}).second)
          cost += p.transfer_us(u, colour[index(u)], colour[index(v)]);
      }
    }
    best = std::min(best, cost + std::min(launches(p, colour, 0), launches(p, colour, 1)));
  }
  return p.size() == 0 ? 0 : best;
}

Problem random_problem(uint64_t seed, const ProblemShape& shape) {
  std::mt19937_64 engine(seed);
  const auto below = [&](uint64_t n) { return static_cast<int32_t>(engine() % n); };
  const auto bernoulli = [&](double p) { return static_cast<double>(engine() >> 11) * 0x1p-53 < p; };
  Problem p;
  for (int32_t d = 0; d < shape.devices; ++d) {
    p.devices.push_back({d == 0 ? "cpu" : "acc" + std::to_string(d), 0, false, -1});
    if (shape.launch && (d > 0 || bernoulli(0.2))) p.devices.back().launch_us = below(31);
  }
  const int32_t latencies[] = {0, 2, 10};
  p.set_links({1000, static_cast<double>(latencies[below(3)])});
  const int32_t kind = below(4);
  for (int32_t v = 0; v < shape.size; ++v) {
    std::set<int32_t> inputs;
    if (kind == 0) {
      if (v > 0) inputs.insert(v - 1);
      if (v > 2 && bernoulli(0.2)) inputs.insert(below(static_cast<uint64_t>(v)));
    } else if (kind == 1) {
      if (v > 0) inputs.insert(below(static_cast<uint64_t>(std::max(1, v / 3 + 1))));
    } else if (kind == 2) {
      for (int32_t u = std::max(0, v - 5); u < v; ++u) {
        if (bernoulli(0.35)) inputs.insert(u);
      }
    } else {
      const int32_t counts[] = {0, 1, 1, 2, 3};
      for (int32_t k = counts[below(5)]; k > 0 && v > 0; --k) inputs.insert(below(static_cast<uint64_t>(v)));
    }
    const int32_t node = p.add_node("n" + std::to_string(v), {inputs.begin(), inputs.end()});
    p.time_of(node, 0) = 1 + below(40);
    const bool trapped = bernoulli(shape.non_exportable);
    for (int32_t d = 1; d < shape.devices; ++d) {
      if (!bernoulli(shape.unsupported)) p.time_of(node, d) = 1 + below(15);
      if (trapped) p.exportable[index(node) * index(shape.devices) + index(d)] = 0;
    }
    p.output_bytes.back() = below(20001);
    p.compute.back() = bernoulli(0.8) ? 1 : 0;
    p.macs.back() = below(1001);
  }
  return p;
}

std::vector<int32_t> depth_parts(const Problem& p, const std::vector<int32_t>& colour) {
  require_sorted(p);
  const int32_t n = p.size();
  std::vector<int32_t> depth(index(n), 0), height(index(n), 0), order(index(n));
  std::vector<std::vector<int32_t>> inputs(index(n)), consumers(index(n));
  for (int32_t v = 0; v < n; ++v) {
    inputs[index(v)] = inputs_of(p, v);
    for (const int32_t u : inputs[index(v)]) {
      depth[index(v)] = std::max(depth[index(v)], depth[index(u)] + 1);
      consumers[index(u)].push_back(v);
    }
  }
  for (int32_t v = n - 1; v >= 0; --v) {
    for (const int32_t c : consumers[index(v)]) height[index(v)] = std::max(height[index(v)], height[index(c)] + 1);
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::pair(-height[index(a)], -depth[index(a)]) < std::pair(-height[index(b)], -depth[index(b)]);
  });

  Parts parts(p);
  std::vector<uint8_t> visited(index(n), 0);
  for (const int32_t seed : order) {
    if (visited[index(seed)] != 0) continue;
    visited[index(seed)] = 1;
    std::vector<int32_t> members = {seed};
    const auto inside = [&](int32_t v) { return parts.of(v) == parts.of(seed); };
    const auto joins = [&](int32_t member, int32_t t) {
      const bool forward = t > member;
      const int32_t step = depth[index(t)] - depth[index(member)];
      const auto& all = forward ? inputs[index(t)] : consumers[index(t)];
      if (step != 1 && step != -1 && !std::all_of(all.begin(), all.end(), inside)) return false;
      const int32_t set = parts.of(seed);
      if (forward ? parts.other_path(set, parts.of(t)) : parts.other_path(parts.of(t), set)) return false;
      parts.merge(set, parts.of(t));
      visited[index(t)] = 1;
      members.push_back(t);
      return true;
    };
    std::vector<std::pair<int32_t, int32_t>> refused;
    size_t next = 0;
    constexpr int32_t kRounds = 8;
    for (int32_t round = 0; round < kRounds; ++round) {
      std::vector<std::pair<int32_t, int32_t>> still;
      for (const auto& [member, t] : refused) {
        if (visited[index(t)] == 0 && !joins(member, t)) still.emplace_back(member, t);
      }
      refused = still;
      for (; next < members.size(); ++next) {
        const int32_t member = members[next];
        for (const auto* neighbours : {&inputs[index(member)], &consumers[index(member)]}) {
          for (const int32_t t : *neighbours) {
            if (visited[index(t)] != 0 || colour[index(t)] != colour[index(seed)]) continue;
            if (!joins(member, t)) refused.emplace_back(member, t);
          }
        }
      }
    }
    depth = depths_of(parts, inputs);
  }
  return parts.all();
}

std::vector<int32_t> merge_parts(const Problem& p, const std::vector<int32_t>& label) {
  require_sorted(p);
  Parts parts(p);
  // Edges within one alternation level first; the level of a node is the largest number of label changes on a path.
  std::vector<int32_t> level(index(p.size()), 0);
  for (int32_t v = 0; v < p.size(); ++v) {
    for (const int32_t u : inputs_of(p, v))
      level[index(v)] = std::max(level[index(v)], level[index(u)] + (label[index(u)] != label[index(v)] ? 1 : 0));
  }
  for (int32_t v = 0; v < p.size(); ++v) {
    for (const int32_t u : inputs_of(p, v)) {
      if (label[index(u)] == label[index(v)] && level[index(u)] == level[index(v)] && parts.of(u) != parts.of(v))
        parts.merge(parts.of(u), parts.of(v));
    }
  }
  // Then every edge within a label, heads by level and first node, unless another path joins the two.
  std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> heads;  // (level, first node) -> nodes
  std::map<int32_t, int32_t> first;
  for (int32_t v = 0; v < p.size(); ++v) {
    first.emplace(parts.of(v), v);
    heads[{level[index(v)], first[parts.of(v)]}].push_back(v);
  }
  for (const auto& [key, nodes] : heads) {
    for (const int32_t v : nodes) {
      for (const int32_t u : inputs_of(p, v)) {
        const int32_t a = parts.of(u);
        const int32_t b = parts.of(v);
        if (a != b && label[index(u)] == label[index(v)] && !parts.other_path(a, b)) parts.merge(a, b);
      }
    }
  }
  return parts.all();
}

bool same_partition(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  std::map<int32_t, int32_t> there, back;
  for (size_t v = 0; v < a.size(); ++v) {
    if (there.emplace(a[v], b[v]).first->second != b[v] || back.emplace(b[v], a[v]).first->second != a[v]) return false;
  }
  return a.size() == b.size();
}

}  // namespace hetnn::plan::reference
