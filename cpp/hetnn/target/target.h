// Devices as planning and passes see them: what each supports and why not, how long a node takes, what a transfer
// costs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/ir/graph.h"

namespace hetnn::target {

/// A device's answer about one node: fit, or every reason why not.
struct Support {
  std::vector<ops::Reason> reasons;
  bool ok() const { return reasons.empty(); }
};

/// Something that runs subgraphs. Backends derive from it; planning and passes know no more than this.
class Device {
 public:
  virtual ~Device() = default;

  /// Unique in its target: `cpu`, `relu-only`.
  virtual const std::string& name() const = 0;
  /// The kind of backend and executor: cpu, npu, null, reference.
  virtual std::string_view kind() const = 0;
  virtual Support support(const ir::Node& node) const = 0;
  /// Whether some operator may give results of the type here.
  virtual bool gives(DType) const { return true; }
  /// Predicted time of a supported node by itself, without launch and transfers, under the symbols' values.
  virtual double time_us(const ir::Node& node, const Bindings& bindings) const = 0;
  /// No node that reads so many bytes of constants takes less.
  virtual double least_us(int64_t /*constant_bytes*/) const { return 0; }
  /// Times of nodes if the device ran all of `alone_us`, its supported nodes with their times by themselves: each takes
  /// its share of the time together. Nodes whose time is no other are left out. `fusion`: whether it may compute
  /// several as one; `deterministic`: only where every rounding is kept.
  virtual std::map<const ir::Node*, double> together_us(const ir::Graph&, const Bindings&,
                                                        const std::map<const ir::Node*, double>& /*alone_us*/,
                                                        bool /*fusion*/, bool /*deterministic*/) const {
    return {};
  }
  /// Whether the node may be the last of a subgraph here: its result can be given to another device.
  virtual bool exportable(const ir::Node&) const { return true; }
  /// Host time of one launch of a subgraph.
  virtual double launch_us() const { return 0; }
  /// Whether a subgraph may run for one block of a batch's entries after another.
  virtual bool runs_in_blocks() const { return false; }
  /// Whether a subgraph must be connected.
  virtual bool connected() const { return false; }
  /// Bytes of constants that fit; negative: no bound.
  virtual int64_t constant_budget_bytes() const { return -1; }
  /// How far results of a supported node may be here from what the node means: a sentence; empty where they are it.
  virtual std::string deviation(const ir::Node&) const { return {}; }
  /// What whoever wrote the data sheet should know: claims that nothing here makes true. A sentence each.
  virtual std::vector<std::string> notes() const { return {}; }
  /// The data sheet as JSON text, kept with a saved executable.
  virtual std::string spec_json() const { return "{}"; }
};

/// Moving a tensor between devices costs latency_us + bytes / bytes_per_us.
struct Link {
  std::string from, to;
  double bytes_per_us = 0;
  double latency_us = 0;
};

/// The devices a model is compiled for. The first is the general processor: every node must fit there or elsewhere.
struct Target {
  std::string name;
  std::vector<std::shared_ptr<const Device>> devices;
  /// Cost of a transfer where `links` names no pair.
  double default_bytes_per_us = 1000;
  double default_latency_us = 0;
  std::vector<Link> links;

  /// Index of the device of that name. InvalidModel listing the target's devices when there is none.
  size_t device_index(std::string_view device) const;
};

/// A plain size for every symbol in the node's shapes and attributes, to ask for support without a model: 64, or more
/// where that leaves none of an axis.
Bindings trial_bindings(const ir::Node& node);

/// The bytes a node reads and writes, its constants included, under the symbols' values.
int64_t bytes_touched(const ir::Node& node, const Bindings& bindings);
int64_t value_bytes(const ir::Value& value, const Bindings& bindings);
/// The operator's work, with its default where it states none.
struct ConcreteWork {
  double macs = 0;
  double flops = 0;
};
ConcreteWork work_of(const ir::Node& node, const Bindings& bindings);

}  // namespace hetnn::target
