// Evenly spaced whole numbers.
#include <algorithm>

#include "hetnn/base/convert.h"
#include "hetnn/base/error.h"
#include "hetnn/kernels/move/move.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {
namespace {

template <typename T>
class ArangeKernel final : public Kernel {
 public:
  ArangeKernel(int64_t count, int64_t start, int64_t step) : count_(count), start_(start), step_(step) {}

  bool serial() const override { return true; }

  void run(const RunContext& context, const std::byte* const*, std::byte* const* outputs) const override {
    if (context.thread != 0) return;
    auto* y = reinterpret_cast<T*>(outputs[0]);
    for (int64_t k = 0; k < count_; ++k) y[k] = convert<T>(start_ + k * step_);
  }

 private:
  int64_t count_, start_, step_;
};

}  // namespace

Refusal serves_arange(const KernelCall& call) { return Terms("arange", call).plain(); }

std::unique_ptr<Kernel> make_arange(const KernelCall& call) {
  const TensorView& y = call.outputs[0];
  const int64_t start = call.params.integer("start", 0), step = call.params.integer("step", 1);
  return visit_dtype(y.dtype, [&](auto zero) -> std::unique_ptr<Kernel> {
    return std::make_unique<ArangeKernel<decltype(zero)>>(y.elems(), start, step);
  });
}

}  // namespace hetnn::kernels
