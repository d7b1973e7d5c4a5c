// The `merge` strategy: classify, merge neighbours of one label, settle what may not be exported, assign by a policy.
#include <algorithm>
#include <memory>
#include <numeric>
#include <span>

#include "hetnn/plan/partition/problem/prefetch.h"
#include "hetnn/plan/partition/strategies/contraction.h"
#include "hetnn/plan/partition/strategies/lists.h"
#include "hetnn/plan/partition/strategies/parts.h"
#include "hetnn/plan/partition/strategies/runs.h"
#include "hetnn/plan/partition/strategies/strategies.h"

namespace hetnn::plan {
namespace {

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// The fastest accelerator that supports each node, even where its value could not leave there: settling comes later.
std::vector<int32_t> classify(const Instance& instance, Criterion criterion = Criterion::support) {
  std::vector<int32_t> label = take_all_colours(instance);
  const Problem& p = *instance.problem;
  if (criterion == Criterion::simd) {
    for (int32_t v = 0; v < instance.size; ++v) {
      if (!p.suits_simd(instance.node_of[index(v)]) && instance.allowed(v, 0)) label[index(v)] = 0;
    }
  }
  if (instance.walled_in.empty()) return label;
  for (int32_t v = 0; v < instance.size; ++v) {
    for (int32_t d = 1; d < instance.device_count; ++d) {
      if (instance.walled_in[index(v) * index(instance.device_count) + index(d)] == 0 || !instance.allowed(v, 0))
        continue;
      if (criterion == Criterion::simd && !p.suits_simd(instance.node_of[index(v)])) continue;
      const int32_t best = label[index(v)];
      const int32_t node = instance.node_of[index(v)];
      if (best == 0 || p.time_of(node, d) < p.time_of(node, best)) label[index(v)] = d;
    }
  }
  return label;
}

/// Components of one label and alternation level, numbered by level, then by their first node. Edges go upwards.
std::vector<int32_t> merge_levels(const Instance& instance, const std::vector<int32_t>& label) {
  const size_t n = label.size();
  std::vector<int32_t> level(n, 0), root(n);
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int32_t v) {
    while (root[index(v)] != v) v = root[index(v)] = root[index(root[index(v)])];
    return v;
  };
  int32_t levels = 1;
  constexpr size_t kAhead = 16;
  for (int32_t v = 0; v < instance.size; ++v) {
    int32_t& mine = level[index(v)];
    for (auto i = index(instance.in_begin[index(v)]); i < index(instance.in_begin[index(v) + 1]); ++i) {
      const auto soon = index(later(instance.in_nodes, i, kAhead));
      prefetch(&level[soon]);
      prefetch(&label[soon]);
      prefetch(&root[soon]);
      const auto u = index(instance.in_nodes[i]);
      mine = std::max(mine, level[u] + (label[u] != label[index(v)] ? 1 : 0));
    }
    levels = std::max(levels, mine + 1);
    for (const int32_t u : instance.inputs(v)) {
      if (level[index(u)] != mine || label[index(u)] != label[index(v)]) continue;
      const int32_t a = find(u);
      const int32_t b = find(v);
      if (a != b) root[index(std::max(a, b))] = std::min(a, b);
    }
  }
  std::vector<int32_t> next(index(levels) + 1, 0);
  for (int32_t v = 0; v < instance.size; ++v) next[index(level[index(v)]) + 1] += find(v) == v ? 1 : 0;
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<int32_t> component(n, -1);
  for (int32_t v = 0; v < instance.size; ++v) {
    const int32_t r = find(v);
    component[index(v)] = r == v ? next[index(level[index(v)])]++ : component[index(r)];
  }
  return component;
}

/// The initial subgraphs. Nodes of one label joined by edges within one alternation level are merged at once: no path
/// between them leaves the label. What is left is a graph of far fewer components; there every edge within a label is
/// merged unless another path joins its ends. Heads go in topological order, so whatever could be merged on a second
/// path is merged by then, and a path that is left leaves the label.
class Components {
 public:
  Components(const Instance& instance, const std::vector<int32_t>& label)
      : instance_(instance), component_of_(merge_levels(instance, label)) {
    for (const int32_t k : component_of_) count_ = std::max(count_, k + 1);
    out_begin_.assign(index(count_) + 1, 0);
    in_begin_.assign(index(count_) + 1, 0);
    for_each_edge([&](int32_t from, int32_t to) {
      ++out_begin_[index(from) + 1];
      ++in_begin_[index(to) + 1];
    });
    std::partial_sum(out_begin_.begin(), out_begin_.end(), out_begin_.begin());
    std::partial_sum(in_begin_.begin(), in_begin_.end(), in_begin_.begin());
    out_nodes_.resize(static_cast<size_t>(out_begin_.back()));
    in_nodes_.resize(static_cast<size_t>(in_begin_.back()));
    std::vector<int32_t> out_fill(out_begin_.begin(), out_begin_.end() - 1);
    std::vector<int32_t> in_fill(in_begin_.begin(), in_begin_.end() - 1);
    for_each_edge([&](int32_t from, int32_t to) {
      out_nodes_[static_cast<size_t>(out_fill[index(from)]++)] = to;
      in_nodes_[static_cast<size_t>(in_fill[index(to)]++)] = from;
    });
    label_of_.resize(index(count_));
    for (size_t v = 0; v < component_of_.size(); ++v) label_of_[index(component_of_[v])] = label[v];
    std::vector<int32_t> order(index(count_));
    std::iota(order.begin(), order.end(), 0);
    contracted_ = std::make_unique<ContractionGraph>(EdgeLists{in_begin_, in_nodes_, out_begin_, out_nodes_}, order);
    merge_across_levels();
  }

  /// Merges the parts of two nodes, an edge apart, when that closes no ring.
  void try_merge(int32_t from, int32_t to) {
    const int32_t a = contracted_->part(component_of_[index(from)]);
    const int32_t b = contracted_->part(component_of_[index(to)]);
    if (a != b) contracted_->try_contract(a, b);
  }

  /// Part numbers per node.
  std::vector<int32_t> numbering() {
    const std::vector<int32_t> number = contracted_->numbering();
    std::vector<int32_t> result(component_of_.size());
    for (size_t v = 0; v < result.size(); ++v) result[v] = number[index(component_of_[v])];
    return result;
  }

 private:
  template <typename Visit>
  void for_each_edge(const Visit& visit) const {
    constexpr size_t kAhead = 16;
    for (int32_t v = 0; v < instance_.size; ++v) {
      const int32_t to = component_of_[index(v)];
      for (auto i = index(instance_.in_begin[index(v)]); i < index(instance_.in_begin[index(v) + 1]); ++i) {
        prefetch(&component_of_[index(later(instance_.in_nodes, i, kAhead))]);
        if (const int32_t from = component_of_[index(instance_.in_nodes[i])]; from != to) visit(from, to);
      }
    }
  }

  void merge_across_levels() {
    constexpr size_t kAhead = 6;
    std::vector<int32_t> tried;
    for (int32_t k = 0; k < count_; ++k) {
      tried.clear();
      for (auto i = index(in_begin_[index(k)]); i < index(in_begin_[index(k) + 1]); ++i) {
        contracted_->prefetch_part(later(in_nodes_, i, 2 * kAhead));
        contracted_->prefetch_edges(later(in_nodes_, i, kAhead));
        const int32_t producer = in_nodes_[i];
        if (label_of_[index(producer)] != label_of_[index(k)]) continue;
        const int32_t from = contracted_->part(producer);
        const int32_t to = contracted_->part(k);
        if (from == to || std::find(tried.begin(), tried.end(), from) != tried.end()) continue;
        if (!contracted_->try_contract(from, to) && tried.size() < kRefusalsKept) tried.push_back(from);
      }
    }
  }

  const Instance& instance_;
  std::vector<int32_t> component_of_;
  int32_t count_ = 0;
  std::vector<int32_t> in_begin_, in_nodes_, out_begin_, out_nodes_, label_of_;
  std::unique_ptr<ContractionGraph> contracted_;
};

/// Parts that end in a node which may not be exported join the parts that consume it; all of them run on the general
/// processor. The same holds for a part of the general processor whose value may not be exchanged with its reader.
class SettleByMerging {
 public:
  SettleByMerging(const Instance& instance, Components& components, std::vector<int32_t>& colour)
      : instance_(instance), components_(components), colour_(colour) {}

  void run() {
    const Problem& p = *instance_.problem;
    if (std::all_of(p.exportable.begin(), p.exportable.end(), [](uint8_t e) { return e != 0; })) return;
    part_of_ = components_.numbering();
    members_ = members_of(part_of_);
    device_.assign(members_.size(), 0);
    for (int32_t v = 0; v < instance_.size; ++v) device_[index(part_of_[index(v)])] = colour_[index(v)];
    queued_.assign(members_.size(), 0);
    for (int32_t part = 0; part < static_cast<int32_t>(members_.size()); ++part) {
      if (device_[index(part)] != 0 ? ends_badly(part) : exchanges_badly(part)) enqueue(part);
    }
    for (size_t head = 0; head < queue_.size(); ++head) settle(queue_[head]);
    for (const auto& [from, to] : joins_) components_.try_merge(from, to);
  }

 private:
  void enqueue(int32_t part) {
    if (queued_[index(part)]++ == 0) queue_.push_back(part);
  }

  bool leaves(int32_t v) const {
    const auto consumers = instance_.consumers(v);
    return consumers.empty() || std::any_of(consumers.begin(), consumers.end(),
                                            [&](int32_t c) { return part_of_[index(c)] != part_of_[index(v)]; });
  }

  /// Whether a value may not pass between the general processor and a device.
  bool barred(int32_t v, int32_t device) const {
    return device != 0 && !instance_.problem->exportable_from(instance_.node_of[index(v)], device);
  }

  bool ends_badly(int32_t part) const {
    const std::span<const int32_t> nodes = members_[index(part)];
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](int32_t v) { return instance_.is_trapped(v, device_[index(part)]) && leaves(v); });
  }

  bool exchanges_badly(int32_t part) const {
    const std::span<const int32_t> nodes = members_[index(part)];
    return std::any_of(nodes.begin(), nodes.end(), [&](int32_t v) {
      const auto consumers = instance_.consumers(v);
      return std::any_of(consumers.begin(), consumers.end(),
                         [&](int32_t c) { return barred(v, device_[index(part_of_[index(c)])]); });
    });
  }

  /// Moves one part to the general processor and draws in the parts that consume its barred values.
  void settle(int32_t part) {
    const int32_t before = device_[index(part)];
    device_[index(part)] = 0;
    for (const int32_t v : members_[index(part)]) {
      if (before != 0 && instance_.allowed(v, 0)) colour_[index(v)] = 0;
      for (const int32_t c : instance_.consumers(v)) {
        const int32_t reader = part_of_[index(c)];
        if (reader == part) continue;
        const bool draws = (before != 0 && instance_.is_trapped(v, before)) || barred(v, device_[index(reader)]);
        if (!draws) continue;
        joins_.emplace_back(v, c);
        if (device_[index(reader)] != 0) enqueue(reader);
      }
    }
  }

  const Instance& instance_;
  Components& components_;
  std::vector<int32_t>& colour_;
  std::vector<int32_t> part_of_, device_, queue_;
  std::vector<uint8_t> queued_;
  NodeLists members_;
  std::vector<std::pair<int32_t, int32_t>> joins_;
};

/// The parts that may run on an accelerator, and what each decision costs.
class Assignment {
 public:
  Assignment(const Instance& instance, std::vector<int32_t> part_of, std::vector<int32_t>& colour)
      : instance_(instance),
        part_of_(std::move(part_of)),
        colour_(colour),
        members_(members_of(part_of_)),
        device_(members_.size(), 0) {
    for (size_t v = 0; v < part_of_.size(); ++v)
      device_[index(part_of_[v])] = std::max(device_[index(part_of_[v])], colour_[v]);
  }

  std::vector<int32_t> run(const MergeOptions& options) {
    if (options.policy == Policy::all) return std::move(part_of_);
    if (options.policy == Policy::balance) {
      static_cast<void>(balance());
      return std::move(part_of_);
    }
    const std::vector<double> amount = amounts(options.measure);
    int32_t largest = -1;
    for (int32_t k = 0; k < static_cast<int32_t>(amount.size()); ++k) {
      if (device_[index(k)] != 0 && (largest < 0 || amount[index(k)] > amount[index(largest)])) largest = k;
    }
    for (int32_t k = 0; k < static_cast<int32_t>(amount.size()); ++k) {
      const bool above = amount[index(k)] > options.threshold;
      const bool stays = options.policy == Policy::largest     ? k == largest
                         : options.policy == Policy::threshold ? above
                                                               : k == largest || above;
      if (!stays) send_home(k);
    }
    return std::move(part_of_);
  }

  int32_t device(int32_t part) const { return device_[index(part)]; }
  std::span<const int32_t> members(int32_t part) const { return members_[index(part)]; }

  /// Amount of compute of each part.
  std::vector<double> amounts(Measure measure) const {
    std::vector<double> amount(members_.size(), 0);
    for (int32_t v = 0; v < instance_.size; ++v) {
      if (!instance_.compute(v)) continue;
      double& total = amount[index(part_of_[index(v)])];
      switch (measure) {
        case Measure::nodes:
          total += 1;
          break;
        case Measure::macs:
          total += instance_.macs(v);
          break;
        case Measure::time:
          total += instance_.time(v, instance_.allowed(v, 0) ? 0 : colour_[index(v)]);
          break;
      }
    }
    return amount;
  }

  /// Everything on the general processor first; then part by part the accelerator, where that lowers the cost so far.
  /// The cost reached, without launches of the general processor.
  double balance() {
    std::vector<int32_t> wished = colour_;
    for (int32_t k = 0; k < static_cast<int32_t>(members_.size()); ++k) send_home(k);
    double cost = colours_cost_us(instance_, colour_);
    TransferCounts counts(instance_, colour_);
    for (int32_t k = 0; k < static_cast<int32_t>(members_.size()); ++k) {
      if (device_[index(k)] == 0) continue;
      double gain = -instance_.launch_us[index(device_[index(k)])];
      for (const int32_t v : members_[index(k)]) gain += counts.move(v, wished[index(v)]);
      if (gain > 0) {
        cost -= gain;
        continue;
      }
      for (const int32_t v : members_[index(k)]) counts.move(v, instance_.allowed(v, 0) ? 0 : wished[index(v)]);
    }
    return cost;
  }

 private:
  void send_home(int32_t part) {
    for (const int32_t v : members_[index(part)]) {
      if (instance_.allowed(v, 0)) colour_[index(v)] = 0;
    }
  }

  const Instance& instance_;
  std::vector<int32_t> part_of_;
  std::vector<int32_t>& colour_;
  NodeLists members_;
  std::vector<int32_t> device_;
};

}  // namespace

TransferCounts::TransferCounts(const Instance& instance, std::vector<int32_t>& colour)
    : instance_(instance),
      colour_(colour),
      readers_(static_cast<size_t>(instance.size) * static_cast<size_t>(instance.device_count), 0) {
  for (int32_t v = 0; v < instance.size; ++v) {
    for (const int32_t u : instance.inputs(v)) ++readers(u, colour[index(v)]);
  }
}

double TransferCounts::move(int32_t v, int32_t device) {
  const int32_t from = colour_[index(v)];
  if (from == device) return 0;
  double gain = instance_.time(v, from) - instance_.time(v, device);
  for (const int32_t u : instance_.inputs(v)) {
    const int32_t producer = colour_[index(u)];
    if (--readers(u, from) == 0 && producer != from) gain += instance_.transfer(u, producer, from);
    if (readers(u, device)++ == 0 && producer != device) gain -= instance_.transfer(u, producer, device);
  }
  for (int32_t d = 0; d < instance_.device_count; ++d) {
    if (readers(v, d) == 0) continue;
    if (d != from) gain += instance_.transfer(v, from, d);
    if (d != device) gain -= instance_.transfer(v, device, d);
  }
  colour_[index(v)] = device;
  return gain;
}

std::vector<int32_t> merge_components(const Instance& instance) { return merge_levels(instance, classify(instance)); }

std::vector<int32_t> merge_parts(const Instance& instance, const std::vector<int32_t>& label) {
  return Components(instance, label).numbering();
}

namespace {

/// How many threshold choices are built where their costs are not known beforehand: nodes times choices, and at least.
constexpr size_t kMostTried = 400'000;
constexpr size_t kFewestTried = 8;

/// The costs of all threshold policies at once: subgraphs move to the accelerator from the largest to the smallest.
class PolicySweep {
 public:
  PolicySweep(const Instance& instance, const std::vector<int32_t>& part_of, const std::vector<int32_t>& colour)
      : instance_(instance), wished_(colour), assignment_(instance, part_of, wished_), home_(colour) {
    for (int32_t v = 0; v < instance.size; ++v) {
      if (instance.allowed(v, 0)) home_[index(v)] = 0;
    }
    home_cost_us_ = colours_cost_us(instance, home_);
  }

  /// Choices "every subgraph above some threshold", with or without the largest: a lower bound of each cost, which
  /// leaves out launches of the general processor, islands and budgets, and how many subgraphs it takes. Where the
  /// bound is the cost only the cheapest is returned, else all while that is affordable, cheapest bound first.
  std::vector<std::pair<double, size_t>> thresholds(Measure measure) {
    const std::vector<double> amount = assignment_.amounts(measure);
    order_.clear();
    for (int32_t k = 0; k < static_cast<int32_t>(amount.size()); ++k) {
      if (assignment_.device(k) != 0) order_.push_back(k);
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int32_t a, int32_t b) { return amount[index(a)] > amount[index(b)]; });
    std::vector<int32_t> colour = home_;
    TransferCounts counts(instance_, colour);
    double cost = home_cost_us_;
    std::vector<std::pair<double, size_t>> choices;
    for (size_t k = 0; k < order_.size(); ++k) {
      cost += instance_.launch_us[index(assignment_.device(order_[k]))];
      for (const int32_t v : assignment_.members(order_[k])) cost -= counts.move(v, wished_[index(v)]);
      const bool boundary =
          k == 0 || k + 1 == order_.size() || amount[index(order_[k])] != amount[index(order_[k + 1])];
      if (boundary) choices.emplace_back(cost, k + 1);
    }
    std::stable_sort(choices.begin(), choices.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const bool exact = instance_.launch_us[0] == 0 && !instance_.any_connected && !instance_.any_budget;
    const size_t most = exact ? 1 : std::max<size_t>(kFewestTried, kMostTried / (index(instance_.size) + 1));
    if (choices.size() > most) choices.resize(most);
    return choices;
  }

  /// The colours of a choice of the last call of `thresholds`.
  std::vector<int32_t> colours(size_t subgraphs) const {
    std::vector<int32_t> colour = home_;
    for (size_t k = 0; k < subgraphs; ++k) {
      for (const int32_t v : assignment_.members(order_[k])) colour[index(v)] = wished_[index(v)];
    }
    return colour;
  }

 private:
  const Instance& instance_;
  std::vector<int32_t> wished_;
  Assignment assignment_;
  std::vector<int32_t> home_;
  std::vector<int32_t> order_;
  double home_cost_us_ = 0;
};

/// Initial subgraphs after settling: colours and part numbers.
struct Settled {
  std::vector<int32_t> colour;
  std::vector<int32_t> part_of;
};

Settled settle_parts(const Instance& instance, const std::vector<int32_t>& label, Components& components,
                     Settle settle) {
  Settled settled{label, {}};
  if (settle == Settle::merge) {
    SettleByMerging(instance, components, settled.colour).run();
    settled.part_of = components.numbering();
    return settled;
  }
  // What trim takes from a part is decided here, so that the policy measures what is left.
  settled.part_of = components.numbering();
  for (int32_t round = 0; move_trapped(instance, settled.part_of, settled.colour, round >= kGentleRounds) > 0; ++round)
    refine_by_colour(instance, settled.colour, settled.part_of);
  return settled;
}

}  // namespace

Draft plan_merge(const Instance& instance, const MergeOptions& options) {
  const std::vector<int32_t> label = classify(instance, options.criterion);
  Components components(instance, label);
  Settled settled = settle_parts(instance, label, components, options.settle);
  if (options.rings == Rings::merge) send_rings_home(instance, settled.part_of, settled.colour);
  std::vector<int32_t> parts = Assignment(instance, std::move(settled.part_of), settled.colour).run(options);
  return draft_from_parts(instance, std::move(parts), std::move(settled.colour));
}

void for_each_merge_plan(const Instance& instance, const std::function<bool(double)>& wanted,
                         const std::function<void(const std::string&, const std::function<Draft()>&)>& take) {
  const std::vector<int32_t> label = classify(instance);
  const bool alike = std::all_of(instance.problem->exportable.begin(), instance.problem->exportable.end(),
                                 [](uint8_t e) { return e != 0; });
  Components components(instance, label);
  // Trimming first: settling by merging changes the components.
  for (const Settle settle : {Settle::trim, Settle::merge}) {
    if (alike && settle == Settle::merge) break;
    const std::string name = settle == Settle::trim ? "merge settle=trim" : "merge settle=merge";
    const Settled settled = settle_parts(instance, label, components, settle);
    const auto offer = [&](const std::string& full_name, double at_least_us, std::vector<int32_t> colour) {
      if (!wanted(at_least_us)) return;
      take(full_name, [&] { return draft_from_parts(instance, settled.part_of, std::move(colour)); });
    };
    PolicySweep sweep(instance, settled.part_of, settled.colour);
    for (const Measure measure : {Measure::nodes, Measure::macs, Measure::time}) {
      const char* const measures[] = {"nodes", "macs", "time"};
      for (const auto& [at_least_us, subgraphs] : sweep.thresholds(measure)) {
        offer(name + " threshold by " + measures[static_cast<size_t>(measure)], at_least_us, sweep.colours(subgraphs));
      }
    }
    std::vector<int32_t> balanced = settled.colour;
    const double cost = Assignment(instance, settled.part_of, balanced).balance();
    offer(name + " balance", cost, std::move(balanced));
  }
}

}  // namespace hetnn::plan
