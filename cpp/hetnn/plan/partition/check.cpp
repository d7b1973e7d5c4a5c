// The independent checker: proves the invariants of a plan from the problem alone, sharing no code with the strategies.
#include <algorithm>
#include <cmath>

#include "hetnn/base/error.h"
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
  int32_t device_of(int32_t v) const { return nodes_[static_cast<size_t>(v)].device; }
  int32_t place(int32_t v) const { return nodes_[static_cast<size_t>(v)].place; }

  /// Every node once, on a device that supports it, hard pins kept, nodes of a subgraph in a runnable order.
  void check_places() {
    const size_t n = p_.ids.size();
    if (r_.device_of.size() != n || r_.subgraph_of.size() != n) fail("it does not speak of every node");
    nodes_.resize(n);
    for (size_t v = 0; v < n; ++v) {
      nodes_[v].place = r_.subgraph_of[v];
      nodes_[v].device = r_.device_of[v];
    }
    size_t placed = 0;
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      const PartitionSubgraph& subgraph = r_.subgraphs[s];
      if (subgraph.nodes.empty()) fail(text("subgraph ", s, " is empty"));
      if (subgraph.device < 0 || subgraph.device >= p_.device_count()) fail(text("subgraph ", s, " has no device"));
      for (const int32_t v : subgraph.nodes) {
        if (v < 0 || v >= p_.size()) fail(text("subgraph ", s, " holds node ", v, ", which does not exist"));
        if (nodes_[static_cast<size_t>(v)].rank >= 0) fail("node '" + id(v) + "' is in two subgraphs");
        nodes_[static_cast<size_t>(v)].rank = static_cast<int32_t>(placed++);
        if (place(v) != static_cast<int32_t>(s) || device_of(v) != subgraph.device)
          fail("node '" + id(v) + "' is recorded elsewhere than its subgraph");
        if (!p_.supported(v, subgraph.device))
          fail("node '" + id(v) + "' is on '" + device(subgraph.device) + "', which does not support it");
        if (!p_.pins.empty() && p_.pins[static_cast<size_t>(v)].hard && p_.pins[static_cast<size_t>(v)].device >= 0 &&
            p_.pins[static_cast<size_t>(v)].device != subgraph.device)
          fail("node '" + id(v) + "' is pinned to '" + device(p_.pins[static_cast<size_t>(v)].device) + "' but on '" +
               device(subgraph.device) + "'");
      }
    }
    if (placed != n) fail(text(n - placed, " nodes are in no subgraph"));
  }

  /// Every input stands before its reader, across and within subgraphs, so the graph of subgraphs has no ring.
  void check_edges() {
    for (int32_t v = 0; v < p_.size(); ++v) {
      const Node reader = nodes_[static_cast<size_t>(v)];
      for (int64_t i = p_.input_begin[static_cast<size_t>(v)]; i < p_.input_begin[static_cast<size_t>(v) + 1]; ++i) {
        const int32_t u = p_.inputs[static_cast<size_t>(i)];
        const Node& producer = nodes_[static_cast<size_t>(u)];
        if (producer.place > reader.place)
          fail("the subgraph of '" + id(u) + "' comes after that of its reader '" + id(v) + "'");
        if (producer.rank >= reader.rank)
          fail("node '" + id(u) + "' comes after its reader '" + id(v) + "' in one subgraph");
      }
    }
  }

  /// Inputs, outputs and crossings are those of the edges and nothing else; no trapped value leaves its device.
  void check_interfaces() {
    const size_t n = p_.ids.size();
    const size_t devices = p_.devices.size();
    std::vector<uint8_t> crosses(n * devices, 0);
    size_t crossings = 0;
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      const PartitionSubgraph& subgraph = r_.subgraphs[s];
      size_t inputs = 0;
      for (const int32_t v : subgraph.nodes) {
        for (int64_t i = p_.input_begin[static_cast<size_t>(v)]; i < p_.input_begin[static_cast<size_t>(v) + 1]; ++i) {
          const int32_t u = p_.inputs[static_cast<size_t>(i)];
          Node& producer = nodes_[static_cast<size_t>(u)];
          producer.read = true;
          if (producer.place == static_cast<int32_t>(s)) continue;
          producer.leaves = true;
          if (producer.read_by != static_cast<int32_t>(s)) {
            producer.read_by = static_cast<int32_t>(s);
            ++inputs;
          }
          if (producer.device == subgraph.device) continue;
          uint8_t& crossing = crosses[static_cast<size_t>(u) * devices + static_cast<size_t>(subgraph.device)];
          crossings += crossing == 0 ? 1 : 0;
          crossing = 1;
        }
      }
      int32_t last = -1;
      for (const int32_t u : subgraph.inputs) {
        if (u <= last || u >= p_.size() || nodes_[static_cast<size_t>(u)].read_by != static_cast<int32_t>(s))
          fail(text("the inputs of subgraph ", s, " are not those of its edges"));
        last = u;
      }
      if (inputs != subgraph.inputs.size()) fail(text("subgraph ", s, " lacks an input"));
    }
    size_t outputs = 0;
    for (int32_t v = 0; v < p_.size(); ++v) {
      const Node& node = nodes_[static_cast<size_t>(v)];
      const bool output = node.leaves || !node.read;
      outputs += output ? 1 : 0;
      if (output && !p_.exportable_from(v, device_of(v)))
        fail("node '" + id(v) + "' is an output of a subgraph of '" + device(device_of(v)) +
             "', which cannot export it");
    }
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      int32_t last = -1;
      for (const int32_t v : r_.subgraphs[s].outputs) {
        if (v <= last || v >= p_.size() || place(v) != static_cast<int32_t>(s) ||
            (!nodes_[static_cast<size_t>(v)].leaves && nodes_[static_cast<size_t>(v)].read))
          fail(text("subgraph ", s, " records an output that nobody outside reads"));
        last = v;
        --outputs;
      }
    }
    if (outputs != 0) fail("a subgraph lacks an output");
    if (crossings != r_.crossings.size()) fail("a crossing is missing or is recorded twice");
    std::pair<int32_t, int32_t> before{-1, -1};
    for (const PartitionCrossing& crossing : r_.crossings) {
      const std::pair<int32_t, int32_t> now{crossing.node, crossing.to_device};
      if (!(before < now) || crossing.node >= p_.size() || crossing.to_device >= p_.device_count() ||
          crosses[static_cast<size_t>(crossing.node) * devices + static_cast<size_t>(crossing.to_device)] == 0 ||
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
    for (const PartitionSubgraph& s : r_.subgraphs) {
      double run = p_.devices[static_cast<size_t>(s.device)].launch_us;
      for (const int32_t v : s.nodes) run += p_.time_of(v, s.device);
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

  /// What the proofs ask of a node, together so that it touches one cache line.
  struct Node {
    int32_t place = -1, device = -1;
    /// Its place in the order of all subgraphs' nodes.
    int32_t rank = -1;
    /// The last subgraph, other than its own, that was seen to read it.
    int32_t read_by = -1;
    bool read = false, leaves = false;
  };

  const Problem& p_;
  const PartitionResult& r_;
  std::vector<Node> nodes_;
  double transfers_us_ = 0;
};

}  // namespace

void check_partition(const Problem& problem, const PartitionResult& result) { Checker(problem, result).run(); }

}  // namespace hetnn::plan
