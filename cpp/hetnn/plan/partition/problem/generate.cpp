// Random planning problems of the kinds that networks and partitioners meet; the same on every machine.
#include <algorithm>
#include <cmath>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/problem/problem.h"

namespace hetnn::plan {
namespace {

/// SplitMix64: the standard library's distributions differ between implementations, this does not.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// Uniform in [low, high].
  int32_t between(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(unit() * (static_cast<double>(high) - static_cast<double>(low) + 1));
  }
  bool bernoulli(double p) { return unit() < p; }

 private:
  uint64_t state_;
};

void sort_unique(std::vector<int32_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// The inputs of every node, by a kind of graph; inputs are below the node.
using Graph = std::vector<std::vector<int32_t>>;

Graph layered(int32_t n, Random& random) {
  Graph graph(static_cast<size_t>(n));
  const int32_t width = std::max(1, std::min(8, n / 4));
  for (int32_t v = width; v < n; ++v) {
    const int32_t layer = v / width * width;
    for (int32_t u = layer - width; u < layer; ++u) {
      if (random.bernoulli(0.3)) graph[static_cast<size_t>(v)].push_back(u);
    }
    if (graph[static_cast<size_t>(v)].empty())
      graph[static_cast<size_t>(v)].push_back(random.between(layer - width, layer - 1));
  }
  return graph;
}

/// Splits edges in two or doubles them, at random, until there are enough nodes; then numbers them along the edges.
Graph series_parallel(int32_t n, Random& random) {
  Graph graph(static_cast<size_t>(n));
  // An open row of blocks: each is one node, or a fork of two to four branches that join again.
  int32_t v = 0;
  int32_t tail = -1;
  while (v < n) {
    const int32_t branches = random.between(1, 4);
    const int32_t length = random.between(1, 3);
    if (branches == 1 || tail < 0 || v + branches * length + 1 > n) {
      if (tail >= 0) graph[static_cast<size_t>(v)].push_back(tail);
      tail = v++;
      continue;
    }
    std::vector<int32_t> ends;
    for (int32_t b = 0; b < branches; ++b) {
      int32_t before = tail;
      for (int32_t k = random.between(0, length); k > 0; --k) {
        graph[static_cast<size_t>(v)].push_back(before);
        before = v++;
      }
      ends.push_back(before);
    }
    sort_unique(ends);
    graph[static_cast<size_t>(v)] = ends;
    tail = v++;
  }
  return graph;
}

Graph random_graph(int32_t n, Random& random) {
  Graph graph(static_cast<size_t>(n));
  constexpr int32_t kInputs[] = {0, 1, 1, 2, 3};
  for (int32_t v = 1; v < n; ++v) {
    for (int32_t k = kInputs[random.between(0, 4)]; k > 0; --k)
      graph[static_cast<size_t>(v)].push_back(random.between(0, v - 1));
    sort_unique(graph[static_cast<size_t>(v)]);
  }
  return graph;
}

Graph chain(int32_t n) {
  Graph graph(static_cast<size_t>(n));
  for (int32_t v = 1; v < n; ++v) graph[static_cast<size_t>(v)].push_back(v - 1);
  return graph;
}

/// One node read by all, and one that reads all of those.
Graph fan(int32_t n) {
  Graph graph(static_cast<size_t>(n));
  for (int32_t v = 1; v + 1 < n; ++v) graph[static_cast<size_t>(v)].push_back(0);
  for (int32_t u = n > 2 ? 1 : 0; u + 1 < n; ++u) graph[static_cast<size_t>(n - 1)].push_back(u);
  return graph;
}

/// Blocks of fourteen nodes: normalize, three projections, scores, softmax, context, projection, add, normalize, two
/// layers around an activation, add.
Graph transformer(int32_t n) {
  Graph graph;
  constexpr int32_t kBlock = 14;
  // Inputs relative to the node, within a block whose input is node -1 of the block.
  const std::vector<std::vector<int32_t>> block = {{-1}, {0},     {0}, {0}, {1, 2}, {4},  {5, 3},
                                                   {6},  {-1, 7}, {8}, {9}, {10},   {11}, {8, 12}};
  graph.emplace_back();
  while (static_cast<int32_t>(graph.size()) < n) {
    const auto base = static_cast<int32_t>(graph.size());
    for (int32_t k = 0; k < kBlock && static_cast<int32_t>(graph.size()) < n; ++k) {
      std::vector<int32_t> inputs;
      for (const int32_t i : block[static_cast<size_t>(k)]) inputs.push_back(base + i);
      sort_unique(inputs);
      graph.push_back(std::move(inputs));
    }
  }
  graph.resize(static_cast<size_t>(n));
  return graph;
}

Graph make_graph(std::string_view kind, int32_t n, Random& random) {
  if (kind == "layered") return layered(n, random);
  if (kind == "series-parallel") return series_parallel(n, random);
  if (kind == "random") return random_graph(n, random);
  if (kind == "chain") return chain(n);
  if (kind == "fan") return fan(n);
  if (kind == "transformer") return transformer(n);
  throw InvalidModel(text("generate_problem: there is no kind '", kind,
                          "'; there are layered, series-parallel, random, chain, fan, transformer."));
}

void require_share(const char* name, double value) {
  if (value >= 0 && value <= 1) return;
  throw InvalidModel(text("generate_problem: ", name, " must be between 0 and 1, got ", value, "."));
}

}  // namespace

Problem generate_problem(std::string_view kind, int32_t nodes, uint64_t seed, const GenerateOptions& options) {
  if (nodes < 0) throw InvalidModel(text("generate_problem: nodes must be at least 0, got ", nodes, "."));
  if (options.devices < 1) {
    throw InvalidModel(text("generate_problem: devices must be at least 1, got ", options.devices, "."));
  }
  require_share("unsupported", options.unsupported);
  require_share("non_exportable", options.non_exportable);
  Random random(seed);
  const Graph graph = make_graph(kind, nodes, random);

  Problem p;
  constexpr const char* kNames[] = {"cpu", "npu", "dsp", "gpu", "npu2"};
  for (int32_t d = 0; d < options.devices; ++d) {
    const std::string name = d < 5 ? kNames[d] : text("device", d);
    p.devices.push_back({name, d > 0 && options.launch ? random.between(0, 30) : 0.0, false, -1});
  }
  constexpr int32_t kLatencies[] = {0, 2, 10};
  p.set_links({1000, static_cast<double>(kLatencies[random.between(0, 2)])});

  std::vector<int32_t> place(graph.size());
  for (size_t k = 0; k < place.size(); ++k) place[k] = static_cast<int32_t>(k);
  if (options.shuffle) {
    for (int32_t k = nodes - 1; k > 0; --k)
      std::swap(place[static_cast<size_t>(k)], place[static_cast<size_t>(random.between(0, k))]);
  }
  std::vector<int32_t> at(graph.size());
  for (size_t k = 0; k < place.size(); ++k) at[static_cast<size_t>(place[k])] = static_cast<int32_t>(k);
  for (const int32_t k : place) {
    std::vector<int32_t> inputs;
    for (const int32_t u : graph[static_cast<size_t>(k)]) inputs.push_back(at[static_cast<size_t>(u)]);
    const int32_t v = p.add_node(text("n", k), inputs);
    p.time_of(v, 0) = random.between(1, 40);
    const bool trapped = random.bernoulli(options.non_exportable);
    for (int32_t d = 1; d < options.devices; ++d) {
      if (!random.bernoulli(options.unsupported)) p.time_of(v, d) = random.between(1, 15);
      if (trapped) p.exportable[static_cast<size_t>(v) * p.devices.size() + static_cast<size_t>(d)] = 0;
    }
    p.output_bytes.back() = random.between(0, 20000);
    p.compute.back() = random.bernoulli(0.8) ? 1 : 0;
    p.macs.back() = random.between(0, 1000);
  }
  return p;
}

}  // namespace hetnn::plan
