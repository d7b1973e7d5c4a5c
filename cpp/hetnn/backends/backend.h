// What a device adds to planning: turning its subgraphs into code that the runtime runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hetnn/backends/assembler.h"
#include "hetnn/base/error.h"
#include "hetnn/passes/compute_in_f32.h"
#include "hetnn/passes/fuse.h"
#include "hetnn/target/target.h"

namespace hetnn::backends {

/// A device of a target as the user gives it: a name, a kind, and the data sheet as JSON text ("" where the kind needs
/// none).
struct DeviceSpec {
  std::string name;
  std::string kind;
  std::string spec_json;
};

/// How subgraphs are lowered.
struct LowerOptions {
  bool fusion = true;
  bool deterministic = false;
  bool keep_denormals = false;
  /// Schedules to follow, as text (backends/schedules.h); "": as the backend finds best.
  std::string schedule = {};
  /// Measure on this machine, for runs by so many threads, what kernels leave open (KernelFamily::tune); 0: they take
  /// their defaults.
  int tune_threads = 0;
  /// Told of each constant of the subgraph that is not read any more, its bytes being the program's in another form.
  std::function<void(const ir::Value& constant)> spent = {};
};

/// A DoesNotFit that knows the node at fault, so that planning can take just that node from the device.
class NodeDoesNotFit : public DoesNotFit {
 public:
  NodeDoesNotFit(const std::string& message, std::string node) : DoesNotFit(message), node_(std::move(node)) {}
  const std::string& node() const { return node_; }

 private:
  std::string node_;
};

/// A kind of device. Each lives in a folder of its own and stands on one line of all_backends.inc.
class Backend : public target::Device {
 public:
  explicit Backend(const DeviceSpec& spec) : name_(spec.name), kind_(spec.kind), spec_json_(spec.spec_json) {}

  const std::string& name() const override { return name_; }
  std::string_view kind() const override { return kind_; }
  std::string spec_json() const override { return spec_json_; }

  /// Whether the device has the arithmetic of a node on f16, bf16 or quantized values. Where it has not, the node is
  /// computed in f32 between conversions (passes/compute_in_f32.h).
  virtual bool computes_narrow(const ir::Node&, const Bindings& /*hints*/) const { return true; }
  /// Whether it computes such a node in f32 without converting this input, of f16 or bf16.
  virtual bool reads_narrow(const ir::Node&, size_t /*input*/) const { return false; }
  /// Both, of a graph whose symbols have these hints, which outlive it.
  passes::NarrowArithmetic narrow_arithmetic(const Bindings& hints) const {
    return {[this, &hints](const ir::Node& node) { return computes_narrow(node, hints); },
            [this](const ir::Node& node, size_t input) { return reads_narrow(node, input); }};
  }

  /// Which nodes of a subgraph are one launch; without an override each is a launch of its own.
  virtual passes::FuseOptions fusing(const LowerOptions&, const Bindings& /*hints*/) const {
    return {.enabled = false, .can_follow = nullptr};
  }

  /// The predicted time of a launch of several nodes, for devices whose clock tells.
  virtual std::optional<double> launch_time_us(std::span<const ir::Node* const> /*launch*/, const LowerOptions&,
                                               const Bindings& /*hints*/) const {
    return std::nullopt;
  }

  /// Lowers one subgraph, taken out of the model as a graph of its own (stage fused). The values of its inputs and
  /// outputs have buffers in `assembler` already. Throws DoesNotFit or Unsupported naming the node when it cannot:
  /// planning then tries without that node (NodeDoesNotFit) or with smaller subgraphs.
  virtual program::Subprogram lower(const ir::Graph& subgraph, Assembler& assembler,
                                    const LowerOptions& options) const = 0;

  /// Whether code depends on the symbols' values, and compiling a lowered subgraph for one value of each; that does
  /// nothing where code does not depend on them, or is there. Throws as `lower` does.
  virtual bool has_variants() const { return false; }
  virtual void add_variant(const ir::Graph&, const Bindings&, program::Subprogram&, Assembler&,
                           const LowerOptions&) const {}

 private:
  std::string name_, kind_, spec_json_;
};

/// The backend of `spec.kind`; InvalidModel listing the kinds there are.
std::unique_ptr<Backend> make_backend(const DeviceSpec& spec);

/// The kinds there are, in the order of their names.
std::vector<std::string> backend_kinds();

/// Adds a kind besides those of all_backends.inc.
using BackendMaker = std::function<std::unique_ptr<Backend>(const DeviceSpec& spec)>;
void register_backend(const std::string& kind, BackendMaker maker);

}  // namespace hetnn::backends
