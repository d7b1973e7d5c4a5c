// Clusters around trapped nodes, runs of one colour by alternation levels, islands, and the bound on their number.
#include "hetnn/plan/partition/strategies/runs.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/problem/prefetch.h"
#include "hetnn/plan/partition/strategies/rank_set.h"

namespace hetnn::plan {
namespace {

int32_t& at(std::vector<int32_t>& values, int32_t k) { return values[static_cast<size_t>(k)]; }
int32_t at(const std::vector<int32_t>& values, int32_t k) { return values[static_cast<size_t>(k)]; }

/// The graph whose nodes are clusters, as spans over the instance when clusters are single nodes.
struct ClusterGraph {
  int32_t size;
  const std::vector<int32_t>&in_begin, &in_nodes, &out_begin, &out_nodes;

  std::span<const int32_t> inputs(int32_t v) const {
    return {in_nodes.data() + at(in_begin, v), in_nodes.data() + at(in_begin, v + 1)};
  }
  std::span<const int32_t> consumers(int32_t v) const {
    return {out_nodes.data() + at(out_begin, v), out_nodes.data() + at(out_begin, v + 1)};
  }
};

ClusterGraph cluster_graph(const Instance& instance, const Clusters& clusters) {
  if (clusters.of.empty())
    return {instance.size, instance.in_begin, instance.in_nodes, instance.out_begin, instance.out_nodes};
  return {clusters.count, clusters.in_begin, clusters.in_nodes, clusters.out_begin, clusters.out_nodes};
}

std::vector<int32_t> cluster_colours(const Clusters& clusters, const std::vector<int32_t>& colour) {
  if (clusters.of.empty()) return colour;
  std::vector<int32_t> result(static_cast<size_t>(clusters.count));
  for (size_t v = 0; v < colour.size(); ++v) at(result, clusters.of[v]) = colour[v];
  return result;
}

/// Moves every trapped node with a consumer elsewhere, consumers first, so that one pass settles all.
void move_unsettled(const Instance& instance, std::vector<int32_t>& colour) {
  for (int32_t v = instance.size - 1; v >= 0; --v) {
    const int32_t d = at(colour, v);
    if (!instance.is_trapped(v, d)) continue;
    const auto consumers = instance.consumers(v);
    const bool settled = !consumers.empty() &&
                         std::all_of(consumers.begin(), consumers.end(), [&](int32_t c) { return at(colour, c) == d; });
    if (settled) continue;
    const int32_t to = fallback_device(instance, colour, v);
    if (to < 0) {
      throw Unsupported(
          text("node '", instance.id(v), "': its result may not leave '",
               instance.problem->devices[static_cast<size_t>(d)].name,
               "', its consumers are not all there, and no other device can run it. Make it exportable or "
               "let the general processor support it."));
    }
    at(colour, v) = to;
  }
}

int32_t find_root(std::vector<int32_t>& parent, int32_t v) {
  while (at(parent, v) != v) {
    at(parent, v) = at(parent, at(parent, v));
    v = at(parent, v);
  }
  return v;
}

/// Collapses trapped nodes with their consumers. Returns false and fills `on_ring` (per node) when a ring closes.
bool collapse(const Instance& instance, const std::vector<int32_t>& colour, Clusters& clusters,
              std::vector<uint8_t>& on_ring) {
  const size_t n = static_cast<size_t>(instance.size);
  std::vector<int32_t> parent(n);
  for (size_t v = 0; v < n; ++v) parent[v] = static_cast<int32_t>(v);
  bool any = false;
  for (int32_t v = 0; v < instance.size; ++v) {
    if (!instance.is_trapped(v, at(colour, v))) continue;
    for (const int32_t c : instance.consumers(v)) {
      const int32_t a = find_root(parent, v);
      const int32_t b = find_root(parent, c);
      if (a != b) at(parent, std::max(a, b)) = std::min(a, b);
      any = true;
    }
  }
  clusters = Clusters{};
  clusters.count = instance.size;
  if (!any) return true;

  // First numbering: by first node. Edges between clusters keep duplicates; they cost nothing but their length.
  std::vector<int32_t> of(n, -1);
  int32_t count = 0;
  for (int32_t v = 0; v < instance.size; ++v) {
    const int32_t root = find_root(parent, v);
    if (root == v) at(of, v) = count++;
    at(of, v) = at(of, root);
  }
  const size_t m = static_cast<size_t>(count);
  std::vector<int32_t> out_begin(m + 1, 0), missing(m, 0);
  for (int32_t v = 0; v < instance.size; ++v) {
    for (const int32_t c : instance.consumers(v)) {
      if (at(of, v) == at(of, c)) continue;
      ++at(out_begin, at(of, v) + 1);
      ++at(missing, at(of, c));
    }
  }
  for (size_t k = 0; k < m; ++k) out_begin[k + 1] += out_begin[k];
  std::vector<int32_t> out_nodes(static_cast<size_t>(out_begin[m]));
  std::vector<int32_t> fill(out_begin.begin(), out_begin.end() - 1);
  for (int32_t v = 0; v < instance.size; ++v) {
    for (const int32_t c : instance.consumers(v)) {
      if (at(of, v) != at(of, c)) at(out_nodes, at(fill, at(of, v))++) = at(of, c);
    }
  }
  std::vector<int32_t> order;
  order.reserve(m);
  for (int32_t k = 0; k < count; ++k) {
    if (at(missing, k) == 0) order.push_back(k);
  }
  for (size_t head = 0; head < order.size(); ++head) {
    for (int32_t i = at(out_begin, order[head]); i < at(out_begin, order[head] + 1); ++i) {
      if (--at(missing, at(out_nodes, i)) == 0) order.push_back(at(out_nodes, i));
    }
  }
  if (order.size() != m) {
    on_ring.assign(n, 0);
    for (size_t v = 0; v < n; ++v) on_ring[v] = at(missing, of[v]) > 0;
    return false;
  }
  std::vector<int32_t> number(m);
  for (size_t k = 0; k < m; ++k) at(number, order[k]) = static_cast<int32_t>(k);
  clusters.count = count;
  clusters.of.resize(n);
  for (size_t v = 0; v < n; ++v) clusters.of[v] = at(number, of[v]);
  clusters.out_begin.assign(m + 1, 0);
  clusters.in_begin.assign(m + 1, 0);
  clusters.out_nodes.reserve(out_nodes.size());
  for (size_t k = 0; k < m; ++k) {
    for (int32_t i = at(out_begin, order[k]); i < at(out_begin, order[k] + 1); ++i) {
      const int32_t to = at(number, at(out_nodes, i));
      clusters.out_nodes.push_back(to);
      ++at(clusters.in_begin, to + 1);
    }
    clusters.out_begin[k + 1] = static_cast<int32_t>(clusters.out_nodes.size());
  }
  for (size_t k = 0; k < m; ++k) clusters.in_begin[k + 1] += clusters.in_begin[k];
  clusters.in_nodes.resize(clusters.out_nodes.size());
  fill.assign(clusters.in_begin.begin(), clusters.in_begin.end() - 1);
  for (int32_t k = 0; k < count; ++k) {
    for (int32_t i = at(clusters.out_begin, k); i < at(clusters.out_begin, k + 1); ++i)
      at(clusters.in_nodes, at(fill, at(clusters.out_nodes, i))++) = k;
  }
  return true;
}

/// Runs of one colour over a graph: which run each node is in, and the colour of each run.
struct Runs {
  std::vector<int32_t> run_of;
  std::vector<int32_t> colour_of_run;
};

/// Two colours, whose runs are even and odd: the run of a node is the first of its colour that is no earlier than any
/// run among its inputs.
Runs alternate(const ClusterGraph& graph, const std::vector<int32_t>& colour, int32_t start, int32_t other) {
  Runs runs;
  runs.run_of.resize(static_cast<size_t>(graph.size));
  int32_t last = -1;
  for (int32_t v = 0; v < graph.size; ++v) {
    const int32_t first = at(colour, v) == start ? 0 : 1;
    int32_t run = first;
    for (const int32_t u : graph.inputs(v)) run = std::max(run, at(runs.run_of, u));
    run += (run ^ first) & 1;
    at(runs.run_of, v) = run;
    last = std::max(last, run);
  }
  for (int32_t k = 0; k <= last; ++k) runs.colour_of_run.push_back(k % 2 == 0 ? start : other);
  return runs;
}

/// What is ready of one colour: how many nodes, and the longest row of runs that still hangs on one of them.
struct Ready {
  std::vector<int32_t> nodes;
  int32_t height = 0;
  int64_t heights = 0;
};

/// Any number of colours: stay on a colour as long as a ready node has it, then take the colour whose ready nodes have
/// the most runs below them (the highest one first, or the largest sum first).
Runs sweep(const ClusterGraph& graph, const std::vector<int32_t>& colour, const std::vector<int32_t>& height,
           int32_t colours, int32_t start, bool by_sum) {
  Runs runs;
  runs.run_of.assign(static_cast<size_t>(graph.size), -1);
  std::vector<int32_t> missing(static_cast<size_t>(graph.size));
  std::vector<Ready> ready(static_cast<size_t>(colours));
  const auto push = [&](int32_t v) {
    Ready& r = ready[static_cast<size_t>(at(colour, v))];
    r.nodes.push_back(v);
    r.height = std::max(r.height, at(height, v));
    r.heights += at(height, v);
  };
  for (int32_t v = 0; v < graph.size; ++v) {
    at(missing, v) = static_cast<int32_t>(graph.inputs(v).size());
    if (at(missing, v) == 0) push(v);
  }
  int32_t left = graph.size;
  int32_t current = start;
  while (left > 0) {
    Ready& r = ready[static_cast<size_t>(current)];
    if (!r.nodes.empty()) {
      const auto run = static_cast<int32_t>(runs.colour_of_run.size());
      runs.colour_of_run.push_back(current);
      while (!r.nodes.empty()) {
        const int32_t v = r.nodes.back();
        r.nodes.pop_back();
        at(runs.run_of, v) = run;
        --left;
        for (const int32_t c : graph.consumers(v)) {
          if (--at(missing, c) == 0) push(c);
        }
      }
      r.height = 0;
      r.heights = 0;
    }
    int32_t best = -1;
    for (int32_t d = 0; d < colours; ++d) {
      const Ready& candidate = ready[static_cast<size_t>(d)];
      if (candidate.nodes.empty()) continue;
      if (best < 0) best = d;
      const Ready& champion = ready[static_cast<size_t>(best)];
      const auto rank = [by_sum](const Ready& x) {
        return by_sum ? std::pair<int64_t, int64_t>(x.heights, x.height)
                      : std::pair<int64_t, int64_t>(x.height, x.heights);
      };
      if (rank(candidate) > rank(champion)) best = d;
    }
    current = best;
  }
  return runs;
}

/// The longest row of runs on a path that starts at each node.
std::vector<int32_t> run_heights(const ClusterGraph& graph, const std::vector<int32_t>& colour) {
  std::vector<int32_t> height(static_cast<size_t>(graph.size), 1);
  for (int32_t v = graph.size - 1; v >= 0; --v) {
    for (const int32_t c : graph.consumers(v))
      at(height, v) = std::max(at(height, v), at(height, c) + (at(colour, c) != at(colour, v) ? 1 : 0));
  }
  return height;
}

/// Draft from runs: empty runs are dropped, the order of runs is the order of subgraphs.
Draft to_draft(const Clusters& clusters, std::vector<int32_t> colour, const std::vector<int32_t>& run_of) {
  Draft draft;
  draft.colour = std::move(colour);
  draft.subgraph_of.resize(draft.colour.size());
  int32_t last = -1;
  for (size_t v = 0; v < draft.colour.size(); ++v) {
    draft.subgraph_of[v] = at(run_of, clusters.of.empty() ? static_cast<int32_t>(v) : clusters.of[v]);
    last = std::max(last, draft.subgraph_of[v]);
  }
  std::vector<int32_t> number(static_cast<size_t>(last + 1), 0);
  for (const int32_t s : draft.subgraph_of) at(number, s) = 1;
  for (int32_t& k : number) {
    const bool used = k != 0;
    k = draft.subgraph_count;
    draft.subgraph_count += used ? 1 : 0;
  }
  for (int32_t& s : draft.subgraph_of) s = at(number, s);
  return draft;
}

}  // namespace

int32_t fallback_device(const Instance& instance, const std::vector<int32_t>& colour, int32_t v) {
  const int32_t here = at(colour, v);
  if (here != 0 && instance.allowed(v, 0)) return 0;
  int32_t best = -1;
  for (int32_t d = 1; d < instance.device_count; ++d) {
    if (d == here || !instance.allowed(v, d) || instance.is_trapped(v, d)) continue;
    if (best < 0 || instance.time(v, d) < instance.time(v, best)) best = d;
  }
  if (best >= 0) return best;
  for (int32_t d = 1; d < instance.device_count; ++d) {
    if (d == here || !instance.allowed(v, d)) continue;
    const auto consumers = instance.consumers(v);
    if (std::all_of(consumers.begin(), consumers.end(), [&](int32_t c) { return at(colour, c) == d; })) return d;
  }
  return -1;
}

Clusters settle_exports(const Instance& instance, std::vector<int32_t>& colour) {
  Clusters clusters;
  clusters.count = instance.size;
  if (instance.trapped.empty()) return clusters;
  std::vector<uint8_t> on_ring;
  for (;;) {
    move_unsettled(instance, colour);
    if (collapse(instance, colour, clusters, on_ring)) return clusters;
    int32_t moved = 0;
    int32_t stuck = -1;
    for (int32_t v = instance.size - 1; v >= 0; --v) {
      if (on_ring[static_cast<size_t>(v)] == 0 || !instance.is_trapped(v, at(colour, v))) continue;
      const int32_t to = fallback_device(instance, colour, v);
      if (to >= 0) {
        at(colour, v) = to;
        ++moved;
      } else {
        stuck = v;
      }
    }
    if (moved == 0) {
      throw Unsupported(text("node '", instance.id(stuck), "': its result may not leave '",
                             instance.problem->devices[static_cast<size_t>(at(colour, stuck))].name,
                             "', no other device can run it, and one subgraph with all its consumers would depend on "
                             "itself. Make it exportable or let the general processor support it."));
    }
  }
}

Draft draw_runs(const Instance& instance, const Clusters& clusters, std::vector<int32_t> colour, RunGoal goal) {
  if (instance.size == 0) return {};
  const ClusterGraph graph = cluster_graph(instance, clusters);
  const std::vector<int32_t> colours = cluster_colours(clusters, colour);
  std::vector<uint8_t> used(static_cast<size_t>(instance.device_count), 0);
  for (const int32_t c : colours) used[static_cast<size_t>(c)] = 1;
  std::vector<int32_t> palette;
  for (int32_t d = 0; d < instance.device_count; ++d) {
    if (used[static_cast<size_t>(d)] != 0) palette.push_back(d);
  }

  Runs best;
  std::tuple<double, int64_t, int64_t> best_rank;
  const auto consider = [&](Runs&& runs) {
    double launches = 0;
    int64_t accelerator = 0;
    std::vector<uint8_t> filled(runs.colour_of_run.size(), 0);
    for (const int32_t r : runs.run_of) filled[static_cast<size_t>(r)] = 1;
    int64_t total = 0;
    for (size_t r = 0; r < filled.size(); ++r) {
      if (filled[r] == 0) continue;
      ++total;
      launches += instance.launch_us[static_cast<size_t>(runs.colour_of_run[r])];
      accelerator += runs.colour_of_run[r] != 0 ? 1 : 0;
    }
    const std::tuple<double, int64_t, int64_t> rank =
        goal == RunGoal::fewest ? std::tuple<double, int64_t, int64_t>(static_cast<double>(total), accelerator, 0)
                                : std::tuple<double, int64_t, int64_t>(launches, accelerator, total);
    if (best.run_of.empty() || rank < best_rank) {
      best = std::move(runs);
      best_rank = rank;
    }
  };

  if (palette.size() <= 2) {
    const int32_t a = palette.front();
    const int32_t b = palette.back();
    consider(alternate(graph, colours, a, b));
    if (a != b) consider(alternate(graph, colours, b, a));
  } else {
    const std::vector<int32_t> height = run_heights(graph, colours);
    for (const int32_t start : palette) {
      for (const bool by_sum : {false, true})
        consider(sweep(graph, colours, height, instance.device_count, start, by_sum));
    }
  }
  Draft draft = to_draft(clusters, std::move(colour), best.run_of);
  if (instance.any_connected) split_islands(instance, draft);
  return draft;
}

Draft draw_runs_in_index_order(const Instance& instance, const Clusters& clusters, std::vector<int32_t> colour) {
  if (instance.size == 0) return {};
  const ClusterGraph graph = cluster_graph(instance, clusters);
  const std::vector<int32_t> colours = cluster_colours(clusters, colour);
  // What taking clusters asks of one, together so that it touches one cache line. The rank of a cluster is the lowest
  // index in the problem among its nodes.
  struct Waiting {
    int32_t rank = std::numeric_limits<int32_t>::max();
    int32_t missing = 0, colour = 0, run = 0;
  };
  std::vector<Waiting> waiting(static_cast<size_t>(graph.size));
  std::vector<int32_t> of_rank(static_cast<size_t>(instance.size), -1);
  for (int32_t v = 0; v < instance.size; ++v) {
    Waiting& cluster = waiting[static_cast<size_t>(clusters.of.empty() ? v : at(clusters.of, v))];
    cluster.rank = std::min(cluster.rank, at(instance.node_of, v));
  }
  RankSet ready(instance.size);
  for (int32_t v = 0; v < graph.size; ++v) {
    Waiting& cluster = waiting[static_cast<size_t>(v)];
    at(of_rank, cluster.rank) = v;
    cluster.missing = static_cast<int32_t>(graph.inputs(v).size());
    cluster.colour = at(colours, v);
    if (cluster.missing == 0) ready.insert(cluster.rank);
  }
  int32_t run = -1;
  int32_t current = -1;
  // Ranks lie anywhere in `of_rank`: the cluster that became ready last is remembered, others are asked for early.
  int32_t latest = -1;
  while (!ready.empty()) {
    const int32_t rank = ready.lowest();
    ready.erase(rank);
    const bool is_latest = latest >= 0 && waiting[static_cast<size_t>(latest)].rank == rank;
    const int32_t v = is_latest ? latest : at(of_rank, rank);
    Waiting& cluster = waiting[static_cast<size_t>(v)];
    if (cluster.colour != current) {
      current = cluster.colour;
      ++run;
    }
    cluster.run = run;
    for (const int32_t c : graph.consumers(v)) {
      Waiting& consumer = waiting[static_cast<size_t>(c)];
      if (--consumer.missing != 0) continue;
      ready.insert(consumer.rank);
      prefetch(&of_rank[static_cast<size_t>(consumer.rank)]);
      latest = c;
    }
  }
  std::vector<int32_t> run_of(waiting.size());
  for (size_t v = 0; v < waiting.size(); ++v) run_of[v] = waiting[v].run;
  Draft draft = to_draft(clusters, std::move(colour), run_of);
  if (instance.any_connected) split_islands(instance, draft);
  return draft;
}

void split_islands(const Instance& instance, Draft& draft) {
  const size_t n = static_cast<size_t>(instance.size);
  std::vector<int32_t> parent(n);
  for (size_t v = 0; v < n; ++v) parent[v] = static_cast<int32_t>(v);
  // Nodes of devices that take islands are tied to the first node of their subgraph.
  std::vector<int32_t> first(static_cast<size_t>(draft.subgraph_count), -1);
  for (int32_t v = 0; v < instance.size; ++v) {
    const int32_t s = at(draft.subgraph_of, v);
    const bool connected = instance.problem->devices[static_cast<size_t>(at(draft.colour, v))].connected;
    const auto join = [&](int32_t u) {
      const int32_t a = find_root(parent, u);
      const int32_t b = find_root(parent, v);
      if (a != b) at(parent, std::max(a, b)) = std::min(a, b);
    };
    if (!connected) {
      if (at(first, s) < 0) at(first, s) = v;
      join(at(first, s));
      continue;
    }
    for (const int32_t u : instance.inputs(v)) {
      if (at(draft.subgraph_of, u) == s) join(u);
    }
  }
  // Parts of one subgraph have no edges between them, so any order of them is valid: by first node.
  std::vector<std::pair<int32_t, int32_t>> parts;
  for (int32_t v = 0; v < instance.size; ++v) {
    if (find_root(parent, v) == v) parts.emplace_back(at(draft.subgraph_of, v), v);
  }
  std::sort(parts.begin(), parts.end());
  std::vector<int32_t> number(n, -1);
  for (size_t k = 0; k < parts.size(); ++k) at(number, parts[k].second) = static_cast<int32_t>(k);
  for (int32_t v = 0; v < instance.size; ++v) at(draft.subgraph_of, v) = at(number, find_root(parent, v));
  draft.subgraph_count = static_cast<int32_t>(parts.size());
}

std::vector<int32_t> fewest_subgraphs(const Instance& instance, const std::vector<int32_t>& colour) {
  // By node and device: twice the runs of the device on a path that ends here, less one while a run is open.
  const size_t devices = static_cast<size_t>(instance.device_count);
  std::vector<int32_t> runs(static_cast<size_t>(instance.size) * devices, 0);
  std::vector<int32_t> most(devices, 0);
  constexpr size_t kAhead = 16;
  for (int32_t v = 0; v < instance.size; ++v) {
    int32_t* mine = runs.data() + static_cast<size_t>(v) * devices;
    const auto own = static_cast<size_t>(at(colour, v));
    for (int32_t i = at(instance.in_begin, v); i < at(instance.in_begin, v + 1); ++i) {
      prefetch(runs.data() + static_cast<size_t>(later(instance.in_nodes, static_cast<size_t>(i), kAhead)) * devices);
      const int32_t* theirs = runs.data() + static_cast<size_t>(at(instance.in_nodes, i)) * devices;
      for (size_t d = 0; d < devices; ++d) mine[d] = std::max(mine[d], theirs[d]);
    }
    for (size_t d = 0; d < devices; ++d) mine[d] += d == own ? (mine[d] + 1) & 1 : mine[d] & 1;
    most[own] = std::max(most[own], (mine[own] + 1) / 2);
  }
  return most;
}

}  // namespace hetnn::plan
