// The flow network of one expansion move.
#include "hetnn/plan/partition/strategies/expansion.h"

#include <algorithm>
#include <cmath>

#include "hetnn/plan/partition/strategies/max_flow.h"

namespace hetnn::plan {
namespace {

/// Builds the network. Source side = keep, sink side = switch to alpha. A node without the choice has no vertex: one
/// that has alpha already, and one that cannot run there, which stands on the source side like the source itself.
class Network {
 public:
  Network(const Instance& instance, const CutWeights& weights, int32_t alpha, const std::vector<int32_t>& colour)
      : instance_(instance),
        weights_(weights),
        alpha_(alpha),
        colour_(colour),
        vertex_of_(static_cast<size_t>(instance.size), kSwitched),
        readers_(static_cast<size_t>(instance.device_count)) {
    int32_t vertices = 0;
    for (int32_t v = 0; v < instance.size; ++v) {
      if (this->colour(v) == alpha) continue;
      // Where nodes are trapped, edges that cannot be cut may lead to any node.
      const bool free = instance.allowed(v, alpha) || !instance.trapped.empty();
      vertex_of_[static_cast<size_t>(v)] = free ? vertices++ : kKept;
    }
    choose_scale();
    flow_ = MaxFlow(vertices);
    const size_t values = static_cast<size_t>(vertices) * static_cast<size_t>(instance.device_count);
    flow_.reserve(static_cast<size_t>(vertices) + values, 2 * instance.in_nodes.size() + values);
    for (int32_t v = 0; v < instance.size; ++v) {
      add_node(v);
      add_value(v);
    }
  }

  double solve(std::vector<int32_t>& colour, std::vector<double>* left_us) {
    const int64_t value = flow_.solve();
    if (left_us) {
      left_us->assign(colour.size(), 0);
      for (int32_t v = 0; v < instance_.size; ++v) {
        if (vertex(v) >= 0 && instance_.allowed(v, alpha_))
          (*left_us)[static_cast<size_t>(v)] = static_cast<double>(flow_.left(vertex(v))) / scale_;
      }
    }
    for (size_t v = 0; v < colour.size(); ++v) {
      if (vertex_of_[v] >= 0 && !flow_.on_source_side(vertex_of_[v])) colour[v] = alpha_;
    }
    return static_cast<double>(value + constant_) / scale_;
  }

 private:
  /// Capacities are integers: microseconds times a power of two, chosen so that no sum can overflow.
  void choose_scale() {
    double total = 1;
    for (int32_t v = 0; v < instance_.size; ++v) {
      double dearest = 0;
      for (int32_t d = 0; d < instance_.device_count; ++d) {
        if (instance_.allowed(v, d)) dearest = std::max(dearest, time(v, d));
      }
      total += dearest;
    }
    double latency = 0, per_byte = 0, bytes = 0;
    for (int32_t from = 0; from < instance_.device_count; ++from) {
      for (int32_t to = 0; to < instance_.device_count; ++to) {
        const size_t k =
            static_cast<size_t>(from) * static_cast<size_t>(instance_.device_count) + static_cast<size_t>(to);
        if (from == to) continue;
        latency = std::max(latency, instance_.latency_us[k]);
        per_byte = std::max(per_byte, instance_.us_per_byte[k]);
      }
    }
    for (const double b : instance_.output_bytes) bytes += b;
    total += (static_cast<double>(instance_.size) * (latency + weights_.crossing_us) + bytes * per_byte) *
             static_cast<double>(instance_.device_count);
    int exponent = 0;
    std::frexp(total, &exponent);
    scale_ = std::ldexp(1.0, std::min(56 - exponent, 40));
  }

  int64_t capacity(double us) const { return std::llround(us * scale_); }

  double time(int32_t v, int32_t d) const {
    const double price = weights_.byte_price_us.empty() ? 0 : weights_.byte_price_us[static_cast<size_t>(d)];
    return instance_.time(v, d) + (price > 0 ? price * instance_.weight_bytes(v) : 0);
  }
  int64_t transfer(int32_t v, int32_t from, int32_t to) const {
    return capacity(instance_.transfer(v, from, to) + weights_.crossing_us);
  }
  int32_t vertex(int32_t v) const { return vertex_of_[static_cast<size_t>(v)]; }
  int32_t colour(int32_t v) const { return colour_[static_cast<size_t>(v)]; }
  void cost_if_kept(int32_t vertex, int64_t cost) {
    if (vertex == kKept) {
      constant_ += cost;
    } else {
      flow_.add_terminals(vertex, 0, cost);
    }
  }
  /// Costs `forward` where u is kept and v switched, `backward` where it is the other way.
  void tie(int32_t u, int32_t v, int64_t forward, int64_t backward) {
    if (u != kKept && v != kKept) {
      flow_.add_edge(u, v, forward, backward);
    } else if (v != kKept) {
      flow_.add_terminals(v, forward, 0);
    } else if (u != kKept) {
      flow_.add_terminals(u, backward, 0);
    }
  }

  void add_node(int32_t v) {
    if (vertex(v) < 0) {
      constant_ += capacity(time(v, colour(v)));
      return;
    }
    const int64_t switched = instance_.allowed(v, alpha_) ? capacity(time(v, alpha_)) : kNever;
    flow_.add_terminals(vertex(v), switched, capacity(time(v, colour(v))));
  }

  /// One vertex that stands for "somebody among these keeps": it is on the source side as soon as one of them is.
  int32_t any_keeps(const std::vector<int32_t>& nodes) {
    if (nodes.size() == 1) return vertex(nodes.front());
    if (std::any_of(nodes.begin(), nodes.end(), [&](int32_t c) { return vertex(c) == kKept; })) return kKept;
    const int32_t any = flow_.add_vertex();
    for (const int32_t c : nodes) flow_.add_edge(vertex(c), any, kNever, 0);
    return any;
  }

  /// The transfers of v's value.
  void add_value(int32_t v) {
    const auto consumers = instance_.consumers(v);
    if (consumers.empty()) return;
    const int32_t mine = colour(v);
    const bool variable = mine != alpha_;
    if (variable) add_traps(v);

    if (consumers.size() == 1 && variable && colour(consumers.front()) == mine) {
      tie(vertex(v), vertex(consumers.front()), transfer(v, mine, alpha_), transfer(v, alpha_, mine));
      return;
    }
    bool read_by_alpha = false;
    keepers_.clear();
    present_.clear();
    for (const int32_t c : consumers) {
      const int32_t d = colour(c);
      if (d == alpha_) {
        read_by_alpha = true;
        continue;
      }
      if (readers_[static_cast<size_t>(d)].empty()) present_.push_back(d);
      readers_[static_cast<size_t>(d)].push_back(c);
      if (vertex(c) != kKept) keepers_.push_back(c);
    }
    for (const int32_t d : present_) {
      std::vector<int32_t>& nodes = readers_[static_cast<size_t>(d)];
      const bool free = vertex(v) != kKept || d != mine;
      const int32_t any = free ? any_keeps(nodes) : kKept;
      nodes.clear();
      if (!variable) {
        cost_if_kept(any, transfer(v, alpha_, d));
      } else if (d == mine) {
        tie(any, vertex(v), transfer(v, alpha_, d), 0);
      } else {
        const int64_t from_alpha = transfer(v, alpha_, d);
        const int64_t from_mine = transfer(v, mine, d);
        cost_if_kept(any, std::min(from_alpha, from_mine));
        if (from_alpha > from_mine) tie(any, vertex(v), from_alpha - from_mine, 0);
      }
    }
    if (!variable) return;
    if (read_by_alpha) {
      cost_if_kept(vertex(v), transfer(v, mine, alpha_));
    } else if (keepers_.size() == 1) {
      tie(vertex(v), vertex(keepers_.front()), transfer(v, mine, alpha_), 0);
    } else if (!keepers_.empty()) {
      const int32_t any = flow_.add_vertex();
      tie(vertex(v), any, transfer(v, mine, alpha_), 0);
      for (const int32_t c : keepers_) flow_.add_edge(any, vertex(c), kNever, 0);
    }
  }

  /// A trapped node may not be apart from its consumers, wherever it is trapped.
  void add_traps(int32_t v) {
    const bool there = instance_.is_trapped(v, alpha_) && instance_.allowed(v, alpha_);
    const bool here = instance_.is_trapped(v, colour(v));
    if (!there && !here) return;
    for (const int32_t c : instance_.consumers(v)) {
      if (vertex(c) >= 0) flow_.add_edge(vertex(v), vertex(c), here ? kNever : 0, there ? kNever : 0);
    }
  }

  static constexpr int64_t kNever = int64_t{1} << 60;
  static constexpr int32_t kSwitched = -1;
  static constexpr int32_t kKept = -2;

  const Instance& instance_;
  const CutWeights& weights_;
  int32_t alpha_;
  const std::vector<int32_t>& colour_;
  std::vector<int32_t> vertex_of_;
  std::vector<std::vector<int32_t>> readers_;
  std::vector<int32_t> keepers_, present_;
  double scale_ = 1;
  int64_t constant_ = 0;
  MaxFlow flow_{0};
};

}  // namespace

double expand(const Instance& instance, const CutWeights& weights, int32_t alpha, std::vector<int32_t>& colour,
              std::vector<double>* left_us) {
  Network network(instance, weights, alpha, colour);
  return network.solve(colour, left_us);
}

}  // namespace hetnn::plan
