// The null device takes every node, at no cost, and runs none: for planning without hardware.
#include "hetnn/backends/backend.h"

namespace hetnn::backends {
namespace {

class NullBackend final : public Backend {
 public:
  using Backend::Backend;
  target::Support support(const ir::Node&) const override { return {}; }
  double time_us(const ir::Node&, const Bindings&) const override { return 0; }
  program::Subprogram lower(const ir::Graph&, Assembler&, const LowerOptions&) const override {
    program::Subprogram out;
    out.code = {.kind = "null", .version = 1, .bytes = {}};
    return out;
  }
};

}  // namespace

std::unique_ptr<Backend> make_null_backend(const DeviceSpec& spec) { return std::make_unique<NullBackend>(spec); }

}  // namespace hetnn::backends
