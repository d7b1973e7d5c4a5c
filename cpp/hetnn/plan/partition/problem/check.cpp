// The independent checker: proves the invariants of a plan from the problem alone, sharing no code with the strategies.
#include <algorithm>
#include <cmath>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/problem/plan.h"
#include "hetnn/plan/partition/problem/prefetch.h"

namespace hetnn::plan {
namespace {

constexpr double kRelativeSlack = 1e-9;
/// How many steps before it is read something is asked for.
constexpr size_t kAhead = 16;

class Checker {
 public:
  Checker(const Problem& problem, const PartitionResult& result) : p_(problem), r_(result) {}

  void run() {
    check_places();
    check_edges();
    check_interfaces();
    check_connected();
    check_budgets();
    check_figures();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError("partition: the plan breaks an invariant: " + what);
  }
  const std::string& id(int32_t v) const { return p_.ids[static_cast<size_t>(v)]; }
  const std::string& device(int32_t d) const { return p_.devices[static_cast<size_t>(d)].name; }
  int32_t device_of(int32_t v) const { return r_.device_of[static_cast<size_t>(v)]; }
  int32_t place(int32_t v) const { return r_.subgraph_of[static_cast<size_t>(v)]; }
  int32_t rank(int32_t v) const { return rank_[static_cast<size_t>(v)]; }

  /// One list a subgraph, each within what is listed.
  void check_lists(const NodeLists& lists) const {
    const std::vector<int32_t>& begin = lists.begin;
    if (begin.size() != r_.subgraphs.size() + 1 || begin.front() != 0 || !std::is_sorted(begin.begin(), begin.end()) ||
        static_cast<size_t>(begin.back()) != lists.nodes.size())
      fail("its lists are not those of its subgraphs");
  }

  /// Every node once, on a device that supports it, hard pins kept, nodes of a subgraph in a runnable order.
  void check_places() {
    const size_t n = p_.ids.size();
    if (r_.device_of.size() != n || r_.subgraph_of.size() != n) fail("it does not speak of every node");
    for (const NodeLists* lists : {&r_.nodes, &r_.inputs, &r_.outputs}) check_lists(*lists);
    values_.reserve(n);
    run_us_.reserve(r_.subgraphs.size());
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      const PartitionSubgraph& subgraph = r_.subgraphs[s];
      if (r_.nodes[s].empty()) fail(text("subgraph ", s, " is empty"));
      if (subgraph.device < 0 || subgraph.device >= p_.device_count()) fail(text("subgraph ", s, " has no device"));
      run_us_.push_back(p_.devices[static_cast<size_t>(subgraph.device)].launch_us);
      for (const int32_t v : r_.nodes[s]) {
        if (v < 0 || v >= p_.size()) fail(text("subgraph ", s, " holds node ", v, ", which does not exist"));
        values_.push_back({.node = v, .place = static_cast<int32_t>(s), .device = subgraph.device});
      }
    }
    rank_.assign(n, -1);
    for (size_t k = 0; k < values_.size(); ++k) {
      prefetch_places(k);
      const Value& value = values_[k];
      const int32_t v = value.node;
      if (rank(v) >= 0) fail("node '" + id(v) + "' is in two subgraphs");
      rank_[static_cast<size_t>(v)] = static_cast<int32_t>(k);
      if (place(v) != value.place || device_of(v) != value.device)
        fail("node '" + id(v) + "' is recorded elsewhere than its subgraph");
      if (!p_.supported(v, value.device))
        fail("node '" + id(v) + "' is on '" + device(value.device) + "', which does not support it");
      if (!p_.pins.empty() && p_.pins[static_cast<size_t>(v)].hard && p_.pins[static_cast<size_t>(v)].device >= 0 &&
          p_.pins[static_cast<size_t>(v)].device != value.device)
        fail("node '" + id(v) + "' is pinned to '" + device(p_.pins[static_cast<size_t>(v)].device) + "' but on '" +
             device(value.device) + "'");
      run_us_[static_cast<size_t>(value.place)] += p_.time_of(v, value.device);
    }
    if (values_.size() != n) fail(text(n - values_.size(), " nodes are in no subgraph"));
  }

  /// Every input stands before its reader, across and within subgraphs, so the graph of subgraphs has no ring. Inputs
  /// and crossings are those of the edges and nothing else.
  void check_edges() {
    const size_t devices = p_.devices.size();
    const auto [edges, edges_end] = edges_by_rank();
    crosses_.assign(p_.ids.size() * devices, 0);
    int32_t reader = 0;
    size_t edge = 0;
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      const PartitionSubgraph& subgraph = r_.subgraphs[s];
      size_t inputs = 0;
      for (const int32_t v : r_.nodes[s]) {
        for (; edge < static_cast<size_t>(edges_end[static_cast<size_t>(reader)]); ++edge) {
          prefetch(&values_[static_cast<size_t>(later(edges, edge, kAhead))]);
          const auto rank = static_cast<size_t>(edges[edge]);
          Value& producer = values_[rank];
          if (edges[edge] >= reader) {
            fail(place(producer.node) == place(v)
                     ? "node '" + id(producer.node) + "' comes after its reader '" + id(v) + "' in one subgraph"
                     : "the subgraph of '" + id(producer.node) + "' comes after that of its reader '" + id(v) + "'");
          }
          producer.read = true;
          if (producer.place == static_cast<int32_t>(s)) continue;
          producer.leaves = true;
          if (producer.read_by != static_cast<int32_t>(s)) {
            producer.read_by = static_cast<int32_t>(s);
            ++inputs;
          }
          if (producer.device == subgraph.device) continue;
          uint8_t& crossing = crosses_[rank * devices + static_cast<size_t>(subgraph.device)];
          crossings_ += crossing == 0 ? 1 : 0;
          crossing = 1;
        }
        ++reader;
      }
      int32_t last = -1;
      for (int32_t i = r_.inputs.begin[s]; i < r_.inputs.begin[s + 1]; ++i) {
        const int32_t u = r_.inputs.nodes[static_cast<size_t>(i)];
        prefetch(&rank_[node_later(r_.inputs, i, kAhead)]);
        if (u <= last || u >= p_.size() || value(u).read_by != static_cast<int32_t>(s))
          fail(text("the inputs of subgraph ", s, " are not those of its edges"));
        last = u;
      }
      if (inputs != r_.inputs[s].size()) fail(text("subgraph ", s, " lacks an input"));
    }
  }

  /// Outputs are those that the edges ask for; no trapped value leaves its device; crossings carry the right figures.
  void check_interfaces() {
    size_t outputs = 0;
    std::vector<bool> is_output(p_.ids.size(), false);
    for (const Value& value : values_) {
      if (!value.leaves && value.read) continue;
      ++outputs;
      is_output[static_cast<size_t>(value.node)] = true;
      if (!p_.exportable_from(value.node, device_of(value.node)))
        fail("node '" + id(value.node) + "' is an output of a subgraph of '" + device(device_of(value.node)) +
             "', which cannot export it");
    }
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      int32_t last = -1;
      for (int32_t i = r_.outputs.begin[s]; i < r_.outputs.begin[s + 1]; ++i) {
        const int32_t v = r_.outputs.nodes[static_cast<size_t>(i)];
        prefetch(&r_.subgraph_of[node_later(r_.outputs, i, kAhead)]);
        if (v <= last || v >= p_.size() || place(v) != static_cast<int32_t>(s) || !is_output[static_cast<size_t>(v)])
          fail(text("subgraph ", s, " records an output that nobody outside reads"));
        last = v;
        --outputs;
      }
    }
    if (outputs != 0) fail("a subgraph lacks an output");
    if (crossings_ != r_.crossings.size()) fail("a crossing is missing or is recorded twice");
    std::pair<int32_t, int32_t> before{0, -1};
    for (const PartitionCrossing& crossing : r_.crossings) {
      const std::pair<int32_t, int32_t> now{crossing.node, crossing.to_device};
      if (!(before < now) || crossing.node >= p_.size() || crossing.to_device >= p_.device_count() ||
          crosses_[static_cast<size_t>(rank(crossing.node)) * p_.devices.size() +
                   static_cast<size_t>(crossing.to_device)] == 0 ||
          crossing.from_device != device_of(crossing.node) ||
          crossing.bytes != p_.output_bytes[static_cast<size_t>(crossing.node)])
        fail("a crossing is recorded wrongly");
      before = now;
      transfers_us_ += p_.transfer_us(crossing.node, crossing.from_device, crossing.to_device);
    }
  }

  void check_connected() {
    if (std::none_of(p_.devices.begin(), p_.devices.end(), [](const ProblemDevice& d) { return d.connected; })) return;
    std::vector<int32_t> parent(p_.ids.size());
    for (size_t v = 0; v < parent.size(); ++v) parent[v] = static_cast<int32_t>(v);
    const auto root = [&](int32_t v) {
      while (parent[static_cast<size_t>(v)] != v) {
        int32_t& up = parent[static_cast<size_t>(v)];
        up = parent[static_cast<size_t>(up)];
        v = up;
      }
      return v;
    };
    for (int32_t v = 0; v < p_.size(); ++v) {
      for (int64_t i = p_.input_begin[static_cast<size_t>(v)]; i < p_.input_begin[static_cast<size_t>(v) + 1]; ++i) {
        const int32_t u = p_.inputs[static_cast<size_t>(i)];
        if (place(u) == place(v)) parent[static_cast<size_t>(root(u))] = root(v);
      }
    }
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      const int32_t d = r_.subgraphs[s].device;
      if (!p_.devices[static_cast<size_t>(d)].connected) continue;
      const int32_t first = r_.nodes[s].front();
      for (const int32_t v : r_.nodes[s]) {
        if (root(v) != root(first))
          fail("'" + id(v) + "' and '" + id(first) + "' share a subgraph of '" + device(d) +
               "' without being connected");
      }
    }
  }

  void check_budgets() {
    std::vector<double> bytes(p_.devices.size(), 0);
    for (int32_t v = 0; v < p_.size(); ++v) bytes[static_cast<size_t>(device_of(v))] += p_.weight_of(v);
    for (size_t d = 0; d < bytes.size(); ++d) {
      if (p_.devices[d].budget_bytes >= 0 && bytes[d] > p_.devices[d].budget_bytes * (1 + kRelativeSlack))
        fail(text("'", p_.devices[d].name, "' holds ", bytes[d], " bytes, its budget is ", p_.devices[d].budget_bytes));
    }
  }

  /// Cost by the formula; the schedule respects devices and dependencies and ends when it says.
  void check_figures() {
    double total = transfers_us_;
    for (size_t k = 0; k < r_.subgraphs.size(); ++k) {
      const PartitionSubgraph& s = r_.subgraphs[k];
      const double run = run_us_[k];
      if (!near(run, s.predicted_us)) fail(text("a subgraph takes ", run, " us but records ", s.predicted_us));
      // Of a late start the difference would lose what the sum keeps.
      if (!near(s.start_us + run, s.finish_us)) fail("a subgraph's place in the schedule is not as long as it runs");
      total += run;
    }
    if (!near(total, r_.cost_us)) fail(text("it costs ", total, " us but records ", r_.cost_us));
    std::vector<double> free_us(p_.devices.size(), 0);
    double end = 0;
    const double slack = kRelativeSlack * (1 + total);
    for (size_t k = 0; k < r_.subgraphs.size(); ++k) {
      const PartitionSubgraph& s = r_.subgraphs[k];
      if (s.start_us + slack < free_us[static_cast<size_t>(s.device)]) fail("two subgraphs share a device at one time");
      free_us[static_cast<size_t>(s.device)] = s.finish_us;
      end = std::max(end, s.finish_us);
      for (int32_t i = r_.inputs.begin[k]; i < r_.inputs.begin[k + 1]; ++i) {
        const int32_t u = r_.inputs.nodes[static_cast<size_t>(i)];
        const size_t soon = node_later(r_.inputs, i, kAhead);
        prefetch(&r_.device_of[soon]);
        prefetch(&r_.subgraph_of[soon]);
        const double moved = device_of(u) == s.device ? 0 : p_.transfer_us(u, device_of(u), s.device);
        if (s.start_us + slack < r_.subgraphs[static_cast<size_t>(place(u))].finish_us + moved)
          fail("a subgraph starts before '" + id(u) + "' has arrived");
      }
    }
    if (!near(end, r_.makespan_us)) fail(text("the schedule ends at ", end, " us but records ", r_.makespan_us));
    if (r_.makespan_us > r_.cost_us + slack) fail("the schedule is longer than one thing after the other");
  }

  static bool near(double a, double b) { return std::abs(a - b) <= kRelativeSlack * (1 + std::abs(a) + std::abs(b)); }

  /// What the proofs ask of a node's value.
  struct Value {
    int32_t node = 0;
    /// Its subgraph, and the device of that.
    int32_t place = 0;
    int32_t device = 0;
    /// The last subgraph, other than its own, that was seen to read it.
    int32_t read_by = -1;
    bool read = false, leaves = false;
  };
  const Value& value(int32_t v) const { return values_[static_cast<size_t>(rank(v))]; }

  /// Nodes stand anywhere in the problem: asks early for what is recorded of those that come next.
  [[gnu::always_inline]] void prefetch_places(size_t k) const {
    const auto v = static_cast<size_t>(values_[std::min(k + kAhead, values_.size() - 1)].node);
    prefetch(&rank_[v]);
    prefetch(&r_.subgraph_of[v]);
    prefetch(&r_.device_of[v]);
    prefetch(&p_.time_us[v * p_.devices.size()]);
  }
  /// A node some steps on in one of the plan's lists, damaged as it may be.
  size_t node_later(const NodeLists& lists, int32_t i, size_t steps) const {
    const int32_t v = later(lists.nodes, static_cast<size_t>(i), steps);
    return static_cast<size_t>(std::clamp(v, 0, p_.size() - 1));
  }

  /// The producers of each node, in the order of all subgraphs' nodes and by their ranks there, and where those of each
  /// node end: a first pass brings the edges together, so that nothing is looked up in the problem one by one.
  std::pair<std::vector<int32_t>, std::vector<int32_t>> edges_by_rank() const {
    std::vector<int32_t> edges, edges_end;
    edges.reserve(p_.inputs.size());
    edges_end.reserve(values_.size());
    const auto node = [&](size_t k) { return static_cast<size_t>(values_[std::min(k, values_.size() - 1)].node); };
    for (size_t k = 0; k < values_.size(); ++k) {
      prefetch(&p_.input_begin[node(k + kAhead)]);
      prefetch(p_.inputs.data() + p_.input_begin[node(k + kAhead / 2)]);
      const auto inputs = p_.inputs.begin();
      edges.insert(edges.end(), inputs + p_.input_begin[node(k)], inputs + p_.input_begin[node(k) + 1]);
      edges_end.push_back(static_cast<int32_t>(edges.size()));
    }
    for (int32_t& edge : edges) edge = rank(edge);
    return {std::move(edges), std::move(edges_end)};
  }

  const Problem& p_;
  const PartitionResult& r_;
  /// The place of each node in the order of all subgraphs' nodes; in that order neighbours lie close together.
  std::vector<int32_t> rank_;
  std::vector<Value> values_;
  /// [rank(v) * devices + d]: 1 where the value of v moves to d.
  std::vector<uint8_t> crosses_;
  size_t crossings_ = 0;
  /// By subgraph: launch and node times.
  std::vector<double> run_us_;
  double transfers_us_ = 0;
};

}  // namespace

void check_partition(const Problem& problem, const PartitionResult& result) { Checker(problem, result).run(); }

}  // namespace hetnn::plan
