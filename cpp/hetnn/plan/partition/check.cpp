// The independent checker: proves the invariants of a plan from the problem alone, sharing no code with the strategies.
#include <algorithm>
#include <cmath>

#include "hetnn/base/error.h"
#include "hetnn/plan/partition/fetch.h"
#include "hetnn/plan/partition/partition.h"

namespace hetnn::plan {
namespace {

constexpr double kRelativeSlack = 1e-9;

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

  /// Every node once, on a device that supports it, hard pins kept, nodes of a subgraph in a runnable order.
  void check_places() {
    const size_t n = p_.ids.size();
    if (r_.device_of.size() != n || r_.subgraph_of.size() != n) fail("it does not speak of every node");
    values_.reserve(n);
    run_us_.reserve(r_.subgraphs.size());
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      const PartitionSubgraph& subgraph = r_.subgraphs[s];
      if (subgraph.nodes.empty()) fail(text("subgraph ", s, " is empty"));
      if (subgraph.device < 0 || subgraph.device >= p_.device_count()) fail(text("subgraph ", s, " has no device"));
      run_us_.push_back(p_.devices[static_cast<size_t>(subgraph.device)].launch_us);
      for (const int32_t v : subgraph.nodes) {
        if (v < 0 || v >= p_.size()) fail(text("subgraph ", s, " holds node ", v, ", which does not exist"));
        values_.push_back({.node = v, .place = static_cast<int32_t>(s), .device = subgraph.device});
      }
    }
    rank_.assign(n, -1);
    for (size_t k = 0; k < values_.size(); ++k) {
      fetch_places(k);
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
    crosses_.assign(p_.ids.size() * devices, 0);
    int32_t reader = 0;
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      const PartitionSubgraph& subgraph = r_.subgraphs[s];
      size_t inputs = 0;
      for (const int32_t v : subgraph.nodes) {
        fetch_edges(static_cast<size_t>(reader));
        for (int64_t i = p_.input_begin[static_cast<size_t>(v)]; i < p_.input_begin[static_cast<size_t>(v) + 1]; ++i) {
          const int32_t u = p_.inputs[static_cast<size_t>(i)];
          if (rank(u) >= reader) {
            fail(place(u) == place(v)
                     ? "node '" + id(u) + "' comes after its reader '" + id(v) + "' in one subgraph"
                     : "the subgraph of '" + id(u) + "' comes after that of its reader '" + id(v) + "'");
          }
          Value& producer = values_[static_cast<size_t>(rank(u))];
          producer.read = true;
          if (producer.place == static_cast<int32_t>(s)) continue;
          producer.leaves = true;
          if (producer.read_by != static_cast<int32_t>(s)) {
            producer.read_by = static_cast<int32_t>(s);
            ++inputs;
          }
          if (producer.device == subgraph.device) continue;
          uint8_t& crossing = crosses_[static_cast<size_t>(u) * devices + static_cast<size_t>(subgraph.device)];
          crossings_ += crossing == 0 ? 1 : 0;
          crossing = 1;
        }
        ++reader;
      }
      int32_t last = -1;
      for (const int32_t u : subgraph.inputs) {
        if (u <= last || u >= p_.size() || value(u).read_by != static_cast<int32_t>(s))
          fail(text("the inputs of subgraph ", s, " are not those of its edges"));
        last = u;
      }
      if (inputs != subgraph.inputs.size()) fail(text("subgraph ", s, " lacks an input"));
    }
  }

  /// Outputs are those that the edges ask for; no trapped value leaves its device; crossings carry the right figures.
  void check_interfaces() {
    size_t outputs = 0;
    for (const Value& value : values_) {
      if (!value.leaves && value.read) continue;
      ++outputs;
      if (!p_.exportable_from(value.node, device_of(value.node)))
        fail("node '" + id(value.node) + "' is an output of a subgraph of '" + device(device_of(value.node)) +
             "', which cannot export it");
    }
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      int32_t last = -1;
      for (const int32_t v : r_.subgraphs[s].outputs) {
        if (v <= last || v >= p_.size() || place(v) != static_cast<int32_t>(s) || (!value(v).leaves && value(v).read))
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
          crosses_[static_cast<size_t>(crossing.node) * p_.devices.size() + static_cast<size_t>(crossing.to_device)] ==
              0 ||
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
    for (const PartitionSubgraph& s : r_.subgraphs) {
      if (!p_.devices[static_cast<size_t>(s.device)].connected) continue;
      for (const int32_t v : s.nodes) {
        if (root(v) != root(s.nodes.front()))
          fail("'" + id(v) + "' and '" + id(s.nodes.front()) + "' share a subgraph of '" + device(s.device) +
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
      if (!near(s.finish_us - s.start_us, run)) fail("a subgraph's place in the schedule is not as long as it runs");
      total += run;
    }
    if (!near(total, r_.cost_us)) fail(text("it costs ", total, " us but records ", r_.cost_us));
    std::vector<double> free_us(p_.devices.size(), 0);
    double end = 0;
    const double slack = kRelativeSlack * (1 + total);
    for (const PartitionSubgraph& s : r_.subgraphs) {
      if (s.start_us + slack < free_us[static_cast<size_t>(s.device)]) fail("two subgraphs share a device at one time");
      free_us[static_cast<size_t>(s.device)] = s.finish_us;
      end = std::max(end, s.finish_us);
      for (const int32_t u : s.inputs) {
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
  [[gnu::always_inline]] void fetch_places(size_t k) const {
    constexpr size_t kAhead = 16;
    const auto v = static_cast<size_t>(values_[std::min(k + kAhead, values_.size() - 1)].node);
    fetch(&rank_[v]);
    fetch(&r_.subgraph_of[v]);
    fetch(&r_.device_of[v]);
    fetch(&p_.time_us[v * p_.devices.size()]);
  }
  /// The same for their edges, each step once the one before has arrived.
  [[gnu::always_inline]] void fetch_edges(size_t reader) const {
    constexpr size_t kAhead = 6;
    if (reader + 4 * kAhead >= values_.size()) return;
    const auto node = [&](size_t steps) { return static_cast<size_t>(values_[reader + steps * kAhead].node); };
    const auto for_each_input = [&](size_t v, const auto& visit) __attribute__((always_inline)) {
      for (int64_t i = p_.input_begin[v]; i < p_.input_begin[v + 1]; ++i)
        visit(static_cast<size_t>(p_.inputs[static_cast<size_t>(i)]));
    };
    fetch(&p_.input_begin[node(4)]);
    fetch(p_.inputs.data() + p_.input_begin[node(3)]);
    for_each_input(
        node(2), [&](size_t u) __attribute__((always_inline)) { fetch(&rank_[u]); });
    for_each_input(
        node(1), [&](size_t u) __attribute__((always_inline)) {
          fetch(&values_[static_cast<size_t>(rank_[u])]);
          fetch(&crosses_[u * p_.devices.size()]);
        });
  }

  const Problem& p_;
  const PartitionResult& r_;
  /// The place of each node in the order of all subgraphs' nodes; in that order neighbours lie close together.
  std::vector<int32_t> rank_;
  std::vector<Value> values_;
  /// [v * devices + d]: 1 where the value of v moves to d.
  std::vector<uint8_t> crosses_;
  size_t crossings_ = 0;
  /// By subgraph: launch and node times.
  std::vector<double> run_us_;
  double transfers_us_ = 0;
};

}  // namespace

void check_partition(const Problem& problem, const PartitionResult& result) { Checker(problem, result).run(); }

}  // namespace hetnn::plan
