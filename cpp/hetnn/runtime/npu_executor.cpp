// Runs one variant of an npu subprogram on a simulated machine.
#include "hetnn/runtime/npu_executor.h"

#include "hetnn/base/error.h"

namespace hetnn::runtime {

struct NpuExecutor::Impl {};
NpuExecutor::NpuExecutor(const program::Program&, const program::Subprogram&, const program::NpuVariant&) {
  HETNN_ASSERT(false);
}
NpuExecutor::~NpuExecutor() = default;
void NpuExecutor::run(const std::vector<std::byte*>&, const std::vector<BoundBuffer>&) {}
int64_t NpuExecutor::cycles() const { return 0; }
double NpuExecutor::simulated_us() const { return 0; }

}  // namespace hetnn::runtime
