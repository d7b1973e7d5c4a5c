// The reference device: every operator by its meaning, as the interpreter runs it. Its code is the subgraph's text.
#include "hetnn/backends/backend.h"
#include "hetnn/base/error.h"
#include "hetnn/ir/text.h"

namespace hetnn::backends {
namespace {

// The interpreter's loops are plain; it is no device to be fast on.
constexpr double kMacsPerUs = 100, kFlopsPerUs = 100, kNode_us = 10;

class ReferenceBackend final : public Backend {
 public:
  using Backend::Backend;

  target::Support support(const ir::Node& node) const override {
    target::Support out;
    if (node.op().evaluate) return out;
    out.reasons.push_back({text(node.op().name, "_missing"), std::string(node.op().name),
                           "an operator with a reference meaning",
                           text(name(), " has no meaning for ", node.op().name)});
    return out;
  }

  double time_us(const ir::Node& node, const Bindings& bindings) const override {
    const target::ConcreteWork work = target::work_of(node, bindings);
    return kNode_us + work.macs / kMacsPerUs + work.flops / kFlopsPerUs;
  }

  program::Subprogram lower(ir::Graph& subgraph, Assembler&, const LowerOptions&,
                            std::vector<plan::FusionRow>&) const override {
    program::Subprogram out;
    out.code = program::Code::of_text("reference", 1, ir::print(subgraph));
    return out;
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(const DeviceSpec& spec) {
  return std::make_unique<ReferenceBackend>(spec);
}

}  // namespace hetnn::backends
