// The reference device: the general processor with every operator computed by its meaning.
#include "hetnn/backends/backend.h"
#include "hetnn/backends/cpu/emit.h"
#include "hetnn/base/error.h"

namespace hetnn::backends {
namespace {

// Meanings are plain loops on one thread; it is no device to be fast on.
constexpr double kMacsPerUs = 100, kFlopsPerUs = 100, kNode_us = 10;

class ReferenceBackend final : public Backend {
 public:
  using Backend::Backend;

  target::Support support(const ir::Node&) const override { return {}; }

  double time_us(const ir::Node& node, const Bindings& bindings) const override {
    const target::ConcreteWork work = target::work_of(node, bindings);
    return kNode_us + work.macs / kMacsPerUs + work.flops / kFlopsPerUs;
  }

  program::Subprogram lower(const ir::Graph& subgraph, Assembler& assembler, const LowerOptions&) const override {
    program::Subprogram out;
    program::CpuCode code = cpu::emit(subgraph, assembler, {.variants = false});
    code.keep_denormals = true;
    out.code = program::write_cpu_code(code);
    return out;
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(const DeviceSpec& spec) {
  return std::make_unique<ReferenceBackend>(spec);
}

}  // namespace hetnn::backends
